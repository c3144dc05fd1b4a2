"""A release needs a tag, a version and a changelog that agree, and valid workflows."""

import re
from typing import Any

import pytest

from pyprof import __version__
from tests.programs import TOP
from tests.release import notes

CHANGELOG = """# Changelog

## 1.2.0 (2026-01-31)

### Added

- A thing.

## 1.1.0 (2025-12-01)

- Older.
"""


def test_the_notes_are_those_of_the_version() -> None:
    assert notes("v1.2.0", "1.2.0", CHANGELOG) == "### Added\n\n- A thing.\n"
    assert notes("v1.1.0", "1.1.0", CHANGELOG[CHANGELOG.index("## 1.1") :]) == "- Older.\n"


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "reason"),
    [
        ("v1.2.1", "1.2.0", CHANGELOG, "tag v1.2.1 is not v1.2.0"),
        ("v1.3.0", "1.3.0", CHANGELOG, "begins with 1.2.0"),
        ("v1.2.0", "1.2.0", CHANGELOG.replace("2026-01-31", "unreleased"), "needs the date"),
        ("v1.2.0", "1.2.0", "# Changelog\n", "begins with None"),
    ],
)
def test_an_incomplete_release_is_refused(
    tag: str, version: str, changelog: str, reason: str
) -> None:
    with pytest.raises(SystemExit, match=reason):
        notes(tag, version, changelog)


def test_the_changelog_begins_with_this_version() -> None:
    (first, *_) = re.findall(r"^## (.*)$", (TOP / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert re.fullmatch(rf"{re.escape(__version__)} \((unreleased|\d{{4}}-\d\d-\d\d)\)", first)


def test_the_changelog_of_an_unreleased_version_is_short() -> None:
    """Nobody needs its single changes."""
    (_, *sections) = (TOP / "CHANGELOG.md").read_text("utf-8").split("\n## ")
    unreleased = [text for text in sections if "(unreleased)" in text.partition("\n")[0]]
    assert all(len(text.split()) <= 400 for text in unreleased)


def _workflow(name: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    text = (TOP / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")
    workflow: dict[str, Any] = yaml.safe_load(text)
    return workflow


@pytest.mark.parametrize("name", ["ci", "release"])
def test_workflows_use_existing_targets_and_scripts(name: str) -> None:
    jobs = _workflow(name)["jobs"]
    lines = [step["run"] for job in jobs.values() for step in job.get("steps", ()) if "run" in step]
    targets = re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text("utf-8"), re.MULTILINE)
    for line in lines:
        for target in re.findall(r"^make (\S+)", line):
            assert target in targets
        for path in re.findall(r"(?:^|python )(\.?[a-z]+/[\w.]+)", line):
            assert (TOP / path).is_file()
    for job in jobs.values():
        assert job.get("needs", next(iter(jobs))) in jobs
        assert "uses" in job or all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_every_supported_python_is_tested() -> None:
    text = (TOP / "pyproject.toml").read_text("utf-8")
    promised = re.findall(r"Python :: (3\.\d+)", text)
    assert _workflow("ci")["jobs"]["python"]["strategy"]["matrix"]["python"] == promised


def test_a_release_says_where_it_comes_from() -> None:
    steps = _workflow("release")["jobs"]["build"]["steps"]
    (package,) = (step for step in steps if step.get("run") == "make package")
    assert "github.repository" in package["env"]["PROJECT_URL"]
    assert '"PROJECT_URL"' in (TOP / "hatch_build.py").read_text("utf-8")
