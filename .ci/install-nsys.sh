#!/usr/bin/env bash
# Installs Debian's Nsight Systems (component non-free), so that the tests can run the real nsys.
# Does nothing where nsys is there already; where it cannot be had, says why and succeeds: those
# tests then skip.
set -uo pipefail

give_up() {
    echo "nsys is not installed: $1; tests that need it will skip" >&2
    exit 0
}

# The package puts the importer where the command line tool does not look for it.
link_importer() {
    local importer=/usr/lib/nsight-systems/host-linux-x64 folder
    [ -x "$importer/QdstrmImporter" ] || return 1
    for folder in /usr/lib/*-linux-gnu/nsight-systems; do
        [ -e "$folder/host-linux-x64" ] || ln -s "$importer" "$folder/host-linux-x64" || return 1
    done
}

# A second source entry for the components that hold it, written from the one for `main`.
enable_non_free() {
    local main=/etc/apt/sources.list.d/debian.sources
    [ -r "$main" ] || return 1
    sed 's/^Components:.*/Components: contrib non-free/' "$main" \
        >/etc/apt/sources.list.d/nsight-systems.sources
}

if command -v nsys >/dev/null; then
    [ "$(id -u)" = 0 ] && link_importer
    exit 0
fi
command -v apt-get >/dev/null || give_up "no apt-get here"
[ "$(id -u)" = 0 ] || give_up "installing needs root"
enable_non_free || give_up "no Debian sources found"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || give_up "apt-get update failed"
apt-get install -y -qq --no-install-recommends nsight-systems nsight-systems-target >/dev/null \
    || give_up "the package could not be installed"
link_importer || give_up "its importer was not found"
nsys --version
