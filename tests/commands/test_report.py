"""The page of `report`: complete, small and harmless."""

import re
import webbrowser
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pyprof.commands import report
from pyprof.marker import encode_layer
from tests import damage
from tests.analysis.captured import HOSTILE, capture
from tests.builders import SECRETS, Range, Work, nsys_db
from tests.commands import run

NAMES = [
    f"<img src=x onerror=document.title='harmed'>{HOSTILE}",
    "</script><script>alert(1)</script>",
    "some_kernel",
]


def page(source: Path, target: Path, *options: str) -> str:
    done = run("report", source, "-o", target, *options)
    assert done.code == 0, done.stderr
    return target.read_text()


@pytest.fixture
def text(tmp_path: Path) -> str:
    return page(capture(tmp_path / "net.sqlite"), tmp_path / "net.html")


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tags: list[str] = []
        self.asked: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.elements.append((tag, dict(attrs)))
        for name, value in attrs:
            if name in ("src", "href") and value and not value.startswith(("#", "data:")):
                self.asked.append(value)
            if name.startswith("on"):
                self.handlers.append(name)


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_text(tmp_path: Path, name: str) -> None:
    plain, hostile = _Elements(), _Elements()
    plain.feed(page(capture(tmp_path / "a.sqlite", hostile="plain"), tmp_path / "a.html"))
    hostile.feed(page(capture(tmp_path / "b.sqlite", hostile=name), tmp_path / "b.html"))
    assert hostile.tags == plain.tags
    assert (hostile.asked, hostile.handlers) == ([], [])


def test_it_holds_no_folder_user_or_host(text: str) -> None:
    assert "model.py" in text
    assert "/home/me" not in text
    assert not [secret for secret in SECRETS if secret in text]


def test_its_policy_forbids_requests(text: str) -> None:
    """The content policy allows inline parts only, so that not even a mistake sends anything."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "http" not in policy[1]


@pytest.mark.parametrize(
    "name",
    [
        "nsys2024.2-a100-pyprof-markers/net.sqlite",
        "nsys2026.2-h100x2-fsdp/net.sqlite",
        "nsys2024.6-a100-cudagraph/net.sqlite",
        "nvprof-v100-apex/net.dict",
    ],
)
def test_any_capture_has_a_small_page(captures: Path, tmp_path: Path, name: str) -> None:
    page(captures / name, tmp_path / "net.html")
    assert (tmp_path / "net.html").stat().st_size < 5_000_000


@pytest.mark.long
def test_the_largest_capture_has_a_small_page(tmp_path: Path) -> None:
    rows, levels = 2000, 12
    work = [
        Work(f"{'kernel_of_a_long_name_' * 13}{n:05}", (10 * n, 10 * n + 9), (10 * n, 10 * n + 3),
             device=n % 8)
        for n in range(rows)
    ]  # fmt: skip
    ranges = [
        Range(encode_layer(".".join(f"part{(n >> level) % 7}" for level in range(depth + 1))),
              (10 * n - 1, 10 * n + 5))
        for n in range(0, rows, 4) for depth in range(levels)
    ]  # fmt: skip
    ranges += [Range(f"step {n}", (500 * n, 500 * n + 499)) for n in range(rows // 50)]
    page(nsys_db(tmp_path / "net.sqlite", work, ranges), tmp_path / "net.html")
    assert (tmp_path / "net.html").stat().st_size < 5_000_000


def test_a_reader_without_a_mouse_finds_everything(tmp_path: Path) -> None:
    parser = _Elements()
    parser.feed(page(capture(tmp_path / "net.sqlite", steps=3), tmp_path / "net.html"))
    elements = parser.elements
    tags = [tag for tag, _ in elements]
    assert (tags.count("main"), tags.count("h1")) == (1, 1)
    for tag, given in elements:
        classes = (given.get("class") or "").split()
        if {"scroll", "wide"} & {*classes}:
            assert (given["tabindex"], given["role"]) == ("0", "region")
        if tag in ("input", "nav") or given.get("role") in ("region", "group"):
            assert given["aria-label"]
        if tag == "th":
            assert given["scope"] == "col"
    regions = [given["aria-label"] for _, given in elements if given.get("role") == "region"]
    assert len({*regions}) == len(regions)
    ids = [given["id"] for _, given in elements if "id" in given]
    assert len({*ids}) == len(ids)
    assert {given["href"] for tag, given in elements if tag == "a"} <= {f"#{name}" for name in ids}


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_text_has_contrast_in_both_themes(text: str) -> None:
    """At least 4.5 to 1, by WCAG, on every background."""
    style = text.partition("<style>")[2].partition("</style>")[0]
    for start in (":root {", ':root[data-theme="dark"] {'):
        block = style.partition(start)[2].partition("}")[0]
        colours = dict(re.findall(r"--(\w+): (#\w{6})", block))
        for ink in ("ink", "quiet", "accent", "bad", "good"):
            for ground in ("paper", "panel", *(("mark", "bar") if ink == "ink" else ())):
                high, low = sorted((_luminance(colours[ink]), _luminance(colours[ground])))[::-1]
                assert (high + 0.05) / (low + 0.05) >= 4.5, (start, ink, ground)


def test_the_page_says_what_it_shows_and_how_it_was_made(tmp_path: Path) -> None:
    file, target = capture(tmp_path / "net.sqlite", steps=3), tmp_path / "x.html"
    damage.sql(
        file,
        "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)",
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1713889498851521398)",
    )
    text = page(file, target, "--steps", "1:", "-q")
    about = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))
    assert about["GPU"] == "NVIDIA A100-SXM4-80GB"
    assert about["steps"] == "1 to 2 of 3, from ranges &#34;step N&#34;"
    assert about["command"] == "pyprof report net.sqlite --steps 1:"
    assert about["profiler"].startswith("nsys")
    assert about["recorded"] == "2024-04-23 16:24 UTC"
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/home/alice/run/net.sqlite"], "net.sqlite"),
        (["C:\\Users\\alice\\net.sqlite"], "net.sqlite"),
        (["s3://alice:secret@bucket/net.sqlite?token=1"], "net.sqlite"),
        (["sftp://me:secret@host/"], "***@host"),
        (["logs/alice-laptop_144.1701239870737082.pt.trace.json.gz"], "144.pt.trace.json.gz"),
        (["runs/a/", "runs/b"], "a and 1 more"),
        (["runs/a/net.sqlite", "runs/b/net.sqlite"], "net.sqlite and 1 more"),
    ],
)
def test_the_pages_label_holds_no_host_or_folder(paths: list[str], expected: str) -> None:
    """torch.profiler's handler puts the host into file names."""
    assert report._label(paths) == expected


def test_the_page_notes_what_the_summary_warns_of(tmp_path: Path) -> None:
    """Doubts about a card's peaks, too."""
    text = page(capture(tmp_path / "net.sqlite"), tmp_path / "net.html", "--gpu", "L4")
    assert "Note: L4: torch&#39;s own table has 3350 GB/s" in text


def test_source_is_shown_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    source = [f"x = {number}" for number in range(1, 12)] + ["y = torch.relu(<x>)", "z = 13"]
    (tmp_path / "src" / "model.py").write_text("\n".join(source))
    file = capture(tmp_path / "net.sqlite")
    without = page(file, tmp_path / "a.html")
    assert "torch.relu" not in without
    assert "only if --source names its folder" in without
    text = page(file, tmp_path / "b.html", "--source", str(tmp_path / "src"))
    assert '<span class="slow">   12       200 ns  y = torch.relu(&lt;x&gt;)' in text
    assert "    9               x = 9" in text
    assert "    8               x = 8" not in text
    assert "pyprof report net.sqlite --source src" in text
    assert str(tmp_path) not in text


def test_a_page_is_named_after_its_capture_and_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def no_browser(url: str) -> bool:
        asked.append(url)
        return False

    monkeypatch.setattr(webbrowser, "open", no_browser)
    (tmp_path / "runs").mkdir()
    (tmp_path / "here").mkdir()
    net = capture(tmp_path / "runs" / "net.sqlite")
    monkeypatch.chdir(tmp_path / "here")
    done = run("report", "--open", net)
    written = tmp_path / "here" / "net.report.html"
    assert written.exists()
    assert asked == [written.as_uri()]
    assert "no web browser was found; open net.report.html in one" in done.stderr
    assert run("report", "--open", "-o", "-", net).code == 2
