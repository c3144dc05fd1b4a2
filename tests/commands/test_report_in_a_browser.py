"""The page of `report` in a real browser: what it draws, and what clicks, keys and filters do."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyprof.analysis.report import stream_lanes
from tests.analysis.browser import browser, drawn, errors, requests
from tests.analysis.captured import capture
from tests.commands import run
from tests.commands.test_report import NAMES, page
from tests.render.page.shown_parts import page_of

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a capture of three steps with a hostile name.

    One peak for all units, since these kernels' names do not tell theirs.
    """
    folder = tmp_path_factory.mktemp("page")
    built = capture(folder / "net.sqlite", hostile=NAMES[0], steps=3)
    page(built, folder / "net.html", "--gpu", "flops=19T")
    return folder / "net.html"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    with browser(tmp_path_factory.mktemp("browser") / "profile") as driver:
        yield driver


@pytest.fixture
def opened(chromium: WebDriver, shown: Path) -> WebDriver:
    drawn(chromium, shown)
    return chromium


def test_it_opens_without_error_or_request(opened: WebDriver) -> None:
    assert errors(opened) == []
    assert {url.rpartition("/")[2] for url in requests(opened)} == {"net.html"}
    assert opened.title == "net.sqlite: GPU profile"
    assert opened.find_elements("css selector", "img") == []


def test_its_figures_are_drawn(opened: WebDriver) -> None:
    script = """
    return [...document.querySelectorAll('.figure')].map((figure) => {
      const {canvas, pen} = figure.plot;
      const {data} = pen.getImageData(0, 0, canvas.width, canvas.height);
      return [figure.id, canvas.clientHeight > 50 && data.some((value) => value > 0)];
    })"""
    figures = ["timeline", "trend", "shares", "strip", "icicle", "roofline"]
    assert opened.execute_script(script) == [[f"figure-{name}", True] for name in figures]


SHORT_NAMES = [
    ("GPU 1, process 145: step 6 (22.3 ms)", "GPU 1: step 6"),
    ("GPU 1, rank 12: step 6 (22.3 ms)", "rank 12: step 6"),
    ("GPU, rank 12: step 6 (22.3 ms)", "rank 12: step 6"),
    ("GPU 0, process 144, stream 7", "GPU 0, stream 7"),
    ("step 6 (22.3 ms)", "step 6"),
    ("stream 7", "stream 7"),
]


def test_short_row_names_still_differ(opened: WebDriver) -> None:
    script = (
        "const {pen} = document.getElementById('timeline').querySelector('.figure').plot;"
        "return arguments[1].map((room) => pyprof.shortened(pen, arguments[0], room))"
    )
    names, short = (list(each) for each in zip(*SHORT_NAMES, strict=True))
    assert opened.execute_script(script, names, [90, 4000]) == [short, names], "all or none"


def test_a_path_that_begins_with_a_sign_is_not_reordered(opened: WebDriver) -> None:
    """Cells truncated at their start are right to left, but their text must not be."""
    script = """
    const cell = document.querySelector('#table-lines td.path');
    const text = cell.querySelector('.pick').firstChild;
    text.data = '_ops.py:7';
    return [...text.data].map((_, place) => {
      const range = document.createRange();
      range.setStart(text, place);
      range.setEnd(text, place + 1);
      return range.getBoundingClientRect().left;
    })"""
    places = opened.execute_script(script)
    assert places == sorted(places)


def _column(driver: WebDriver, place: int, table: str = "kernels") -> list[str]:
    script = (
        f"return [...document.querySelectorAll('#table-{table} tbody tr:not([hidden])')]"
        f".map(row => row.cells[{place}].textContent)"
    )
    found: list[str] = driver.execute_script(script)
    return found


TIMES = ["900 ns", "600 ns", "600 ns", "150 ns"]


def test_tables_sort(opened: WebDriver) -> None:
    assert _column(opened, 1) == TIMES
    header = opened.find_elements("css selector", "#table-kernels th button")[1]
    header.click()
    assert _column(opened, 1) == TIMES
    header.click()
    assert _column(opened, 1) == TIMES[::-1]


FILTERS = [
    ("kernels", "RELU forward-no", []),
    ("kernels", "relu", ["relu_kernel"]),
    ("kernels", "time:>0.2us", ["exp_kernel", "[CUDA_memcpy_HtoD]", "relu_kernel"]),
    ("kernels", "time:<=150ns", [NAMES[0].replace(" ", "_")]),
    ("kernels", "time:>1", []),  # ms
    ("kernels", "op:relu calls:6", ["relu_kernel"]),
    ("kernels", "op=relu calls=6", ["relu_kernel"]),
    ("kernels", "op=rel", []),
    ("kernels", "op~rel calls>5", ["relu_kernel"]),
    ("kernels", "op!~exp time>0.2us kernel!=relu_kernel", ["[CUDA_memcpy_HtoD]"]),
    ("kernels", "op~^re[kl]u?$ and calls>5", ["relu_kernel"]),
    ("kernels", "op!~exp|memcpy|re.* time>0.2us", ["[CUDA_memcpy_HtoD]"]),
    ("kernels", "share:>=40", ["exp_kernel"]),
    ("ops", "dir:copy", ["[CUDA_memcpy_HtoD]"]),
    ("ops", "tc:0", []),
    ("lines", "model.py:12", ["model.py:12"]),
]


def test_tables_filter(opened: WebDriver) -> None:
    for table, asked, expected in FILTERS:
        box = opened.find_element("css selector", f"input[data-for=table-{table}]")
        box.clear()
        box.send_keys(asked)
        assert _column(opened, 0, table) == expected, asked
        rows = len(opened.find_elements("css selector", f"#table-{table} tbody tr"))
        count = opened.find_element("css selector", f"output[data-for=table-{table}]")
        assert count.text == f"{len(expected)} of {rows} rows", asked


def test_an_invalid_filter_says_so(opened: WebDriver) -> None:
    columns = "no column eff; columns are line, time, share, total, calls"
    box = opened.find_element("css selector", "input[data-for=table-lines]")
    count = opened.find_element("css selector", "output[data-for=table-lines]")
    for asked, said in {
        "eff:<20": columns,
        "eff<20": columns,
        "time:<soon": "soon is not a number",
        "line~[": "[ is not a regular expression",
        "line~(a+)+b": "(a+)+b repeats too much for this page; use pyprof prof --where",
        "time~1": "~ is for texts; time has numbers",
    }.items():
        box.clear()
        box.send_keys(asked)
        assert count.text == said
        assert len(_column(opened, 0, "lines")) == 2


def test_a_table_is_saved_as_csv(opened: WebDriver) -> None:
    box = opened.find_element("css selector", "input[data-for=table-kernels]")
    box.send_keys("time:<300ns")
    text = opened.execute_script("return pyprof.csv(document.getElementById('table-kernels'))")
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["kernel"] == NAMES[0].replace(" ", "_")
    assert (row["time_ns"], row["calls"], row["tc"]) == ("150", "3", "?")


def test_a_row_is_copied(opened: WebDriver) -> None:
    opened.execute_script(
        "window.copied = []; navigator.clipboard.writeText = async (text) => copied.push(text);"
        "const row = document.querySelector('#table-kernels tbody tr');"
        "row.dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));"
        "row.querySelector('button.copy').click()"
    )
    (text,) = opened.execute_script("return window.copied")
    assert text.split("\t")[:3] == ["exp_kernel", "900 ns", "40.0 %"]
    assert opened.find_element("id", "selection").text == ""


SELECTED = """
return [...document.querySelectorAll('table.sortable')].map((table) => [table.id,
  [...table.querySelectorAll('tbody tr:not([hidden])')].map((row) => [
    row.cells[0].querySelector('.pick').textContent,
    Number(row.cells[row.cells.length - 1].dataset.value)])])
"""


def _selected(driver: WebDriver) -> dict[str, list[list[Any]]]:
    return dict(driver.execute_script(SELECTED))


RELU = {
    "table-lines": [["model.py:12", 600]],
    "table-callers": [["train.py:7", 600]],
    "table-ops": [["relu", 600]],
    "table-kernels": [["relu_kernel", 600]],
    "table-host": [["relu", 600]],
}


BOX = """
const {plot} = document.getElementById(arguments[0]);
const {item, canvas} = plot;
const place = (item.path ?? item.name).indexOf(arguments[1]);
canvas.scrollIntoView({block: 'center'});
const box = canvas.getBoundingClientRect();
const [x, y] = item.kind === 'icicle'
  ? [plot.view.at(item.start[place] + item.length[place] / 2),
     plot.view.top + (item.depth[place] + 0.5) * 24]
  : [plot.view.points[place].x, plot.view.points[place].y];
const event = {clientX: box.left + x, clientY: box.top + y, bubbles: true};
canvas.dispatchEvent(new PointerEvent('pointermove', event));
canvas.dispatchEvent(new MouseEvent('click', event));
"""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "click",
    [
        "document.querySelector('#table-kernels tbody tr:nth-child(3)').click()",
        "document.querySelector('#table-ops tbody tr:nth-child(3) .pick').click()",
        "document.querySelector('#table-lines tbody tr:nth-child(2)').click()",
        BOX.replace("arguments[0]", "'figure-icicle'").replace("arguments[1]", "'net.first'"),
        BOX.replace("arguments[0]", "'figure-roofline'").replace("arguments[1]", "'relu'"),
    ],
    ids=["kernel", "op", "line", "module", "point"],
)
def test_a_selection_applies_to_all_tables(opened: WebDriver, click: str) -> None:
    opened.execute_script(click)
    assert _selected(opened) == RELU
    bar = opened.find_element("id", "selection")
    assert "600 ns (26.7 %)" in bar.text
    lit = (
        "const {item} = document.getElementById('figure-timeline').plot;"
        "const facts = item.devices.flatMap(d => d.lanes).flatMap(lane => lane.fact);"
        "return facts.filter(pyprof.selection.has).length"
    )
    assert opened.execute_script(lit) == 6
    bar.find_element("css selector", "button").click()
    assert not bar.is_displayed()
    assert _column(opened, 1) == TIMES


def test_a_selection_leaves_tables_of_devices_whole(
    captures: Path, tmp_path: Path, chromium: WebDriver
) -> None:
    page(captures / "kineto-h100-vit-inference/trace.json.gz", tmp_path / "net.html")
    drawn(chromium, tmp_path / "net.html")
    chromium.find_element("css selector", "#table-ops .pick").click()
    assert len(_column(chromium, 0, "ops")) == 1
    assert _column(chromium, 0, "memory-peaks") == ["cuda:0", "cpu"]
    assert chromium.find_elements("css selector", "#table-memory-peaks .selected") == []


def test_a_row_of_steps_is_named_once(opened: WebDriver) -> None:
    script = """
    const {plot} = document.getElementById('figure-strip');
    const box = plot.canvas.getBoundingClientRect();
    plot.canvas.dispatchEvent(new PointerEvent('pointermove', {
      clientX: box.left + plot.view.left + 1, clientY: box.top + plot.view.top + 4}));
    return [document.querySelector('.tip').innerText.split('\\n')[0], plot.item.names[0]];
    """
    first_line, name = opened.execute_script(script)
    assert first_line == name


def test_escape_ends_a_selection(opened: WebDriver) -> None:
    row = opened.find_element("css selector", "#table-ops tbody tr")
    bar = opened.find_element("id", "selection")
    for end in ("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))",
                "document.querySelector('#table-ops tbody tr').click()"):  # fmt: skip
        row.find_element("css selector", ".pick").click()
        assert bar.is_displayed()
        opened.execute_script(end)
        assert not bar.is_displayed()


def test_a_kernel_in_the_timeline_shows_op_line_and_name(opened: WebDriver) -> None:
    script = """
    const {plot} = document.getElementById('figure-timeline');
    const [{lanes: [lane], gaps}] = plot.item.devices;
    const tell = (row, start, length) => {
      const {top} = plot.view.rows[row];
      const box = plot.canvas.getBoundingClientRect();
      plot.canvas.dispatchEvent(new PointerEvent('pointermove', {
        clientX: box.left + plot.view.at(start + length / 2), clientY: box.top + top + 4}));
      return document.querySelector('.tip').innerText;
    };
    const longest = gaps.length.indexOf(Math.max(...gaps.length));
    return [tell(0, lane.start[0], lane.length[0]),
            tell(2, gaps.start[longest], gaps.length[longest])]
    """
    kernel, gap = opened.execute_script(script)
    for part in ("op relu", "line model.py:12", "kernel relu_kernel", "layer net.first", "100 ns"):
        assert part in kernel
    assert gap.startswith("idle 6.67 us\nlaunch the host launches too slowly")


def test_a_merged_box_is_divided_by_time(
    tmp_path: Path, chromium: WebDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For large captures: the tooltip lists the parts, a click selects that below the pointer."""
    monkeypatch.setattr(stream_lanes, "_MAX_SINGLE", 0)
    monkeypatch.setattr(stream_lanes, "_BINS", 1)
    (tmp_path / "net.html").write_text(page_of(capture(tmp_path / "net.sqlite")))
    drawn(chromium, tmp_path / "net.html")
    script = """
    const {plot} = document.getElementById('figure-timeline');
    const box = plot.canvas.getBoundingClientRect();
    const bottom = plot.view.rows[0].top + plot.view.rows[0].height - 1;
    const event = {clientX: box.left + 600, clientY: box.top + bottom, bubbles: true};
    plot.canvas.dispatchEvent(new PointerEvent('pointermove', event));
    const tip = document.querySelector('.tip').innerText.split('\\n');
    plot.canvas.dispatchEvent(new MouseEvent('click', event));
    return [tip, document.getElementById('selection').textContent]
    """
    tip, selection = chromium.execute_script(script)
    assert tip[:4] == ["4 kernels in 2.45 us, summed 550 ns", "at 0 ns",
                       "exp 300 ns (54.5 %)", "relu 200 ns (36.4 %)"]  # fmt: skip
    assert "under the pointer: op exp" in tip
    assert selection.startswith("exp, forward, model.py:30, exp_kernel, net.second: 300 ns")
    assert errors(chromium) == []


def test_a_merged_box_has_the_colours_of_all_its_families(
    tmp_path: Path, chromium: WebDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what it lists no more, too; by op that is others."""
    for name, most in (("_MAX_SINGLE", 0), ("_BINS", 1), ("_MAX_PARTS", 1)):
        monkeypatch.setattr(stream_lanes, name, most)
    (tmp_path / "net.html").write_text(page_of(capture(tmp_path / "net.sqlite")))
    drawn(chromium, tmp_path / "net.html")
    script = """
    const {plot} = document.getElementById('figure-timeline');
    const {lanes: [lane]} = plot.item.devices[0];
    const choice = plot.host.querySelector('select');
    return ['family', 'op'].map((by) => {
      choice.value = by;
      choice.dispatchEvent(new Event('change'));
      const colours = lane.rest.family.map((family) => plot.ofFamily[family] !== '#9aa0a6');
      return [colours, plot.legend.innerText.split('\\n').includes('others')];
    })"""
    by_family, by_op = chromium.execute_script(script)
    assert by_family == [[True, True], False]
    assert by_op == [[False, False], True]
    assert errors(chromium) == []


def test_ctrl_and_the_wheel_zoom_where_the_pointer_is(opened: WebDriver) -> None:
    script = """
    const {plot} = document.getElementById('figure-timeline');
    const box = plot.canvas.getBoundingClientRect();
    const x = (plot.view.left + plot.view.right) / 4;
    const under = plot.view.value(x);
    plot.canvas.dispatchEvent(new WheelEvent('wheel', {
      deltaY: -300, ctrlKey: true, cancelable: true,
      clientX: box.left + x, clientY: box.top + 30}));
    plot.draw();
    const moved = Math.abs(plot.view.value(x) - under) * plot.view.px;
    const zoomed = [plot.seen.x[1] - plot.seen.x[0], moved < 1.5];
    plot.host.querySelector('[aria-label^="show typical"]').click();
    return [plot.item.length, ...zoomed, plot.seen.x, plot.item.views[0].slice(1)]
    """
    whole, length, stayed, seen, (start, taken) = opened.execute_script(script)
    assert (length, stayed) == (whole / 2, True)
    assert seen == [start, start + taken]


def test_the_wheel_alone_scrolls_the_page(opened: WebDriver) -> None:
    script = """
    const {plot} = document.getElementById('figure-timeline');
    const wheel = new WheelEvent('wheel', {deltaY: -300, bubbles: true, cancelable: true});
    return [plot.canvas.dispatchEvent(wheel), plot.seen.x[1] === plot.whole.x[1]]
    """
    assert opened.execute_script(script) == [True, True]


@pytest.mark.parametrize("by", ["family", "op", "layer"])
def test_the_timeline_is_coloured_by_family_op_or_layer(opened: WebDriver, by: str) -> None:
    script = """
    const {plot} = document.getElementById('figure-timeline');
    const choice = plot.host.querySelector('select');
    choice.value = arguments[0];
    choice.dispatchEvent(new Event('change'));
    const [lane] = plot.item.devices[0].lanes;
    const colours = lane.fact.slice(0, 3).map((fact) => plot.ofFact[fact]);
    return [colours, plot.legend.innerText.split('\\n')]
    """
    (relu, again, exp), legend = opened.execute_script(script, by)
    assert relu == again
    assert (exp == relu) == (by == "family")
    names = {"family": "element-wise", "op": "relu", "layer": "net.first"}
    assert names[by] in " ".join(legend)
    assert ("others" in legend) == (by == "op"), "a copy has none"


OVERLAPS = """
const {labels, points} = document.getElementById('figure-roofline').plot.view;
const apart = (a, b) =>
  a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
const covered = labels.flatMap((a, i) =>
  labels.slice(i + 1).filter(b => !apart(a, b)).map(b => [a.text, b.text]));
return [labels.map(label => label.text), covered]
"""


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("kineto-v100-resnet50-2021/trace.json.gz", 5),
        pytest.param("kineto-mi300x-sglang-decode-graph/replay.pt.trace.json.gz", 5),
    ],
)
def test_labels_of_a_roofline_do_not_collide(
    captures: Path, tmp_path: Path, chromium: WebDriver, name: str, points: int
) -> None:
    target = tmp_path / "net.html"
    assert run("roofline", captures / name, "-o", target).code == 0
    drawn(chromium, target)
    texts, overlaps = chromium.execute_script(OVERLAPS)
    assert overlaps == []
    assert sum(text.endswith(" %") for text in texts) == points
    assert any("TFLOP/s" in text for text in texts)


def test_on_a_telephone_each_roof_is_named_beside_its_own_line(
    captures: Path, tmp_path: Path, sized: WebDriver
) -> None:
    page(captures / "kineto-h100-vit-inference/trace.json.gz", tmp_path / "net.html")
    _screen(sized, 390, 844, mobile=True)
    drawn(sized, tmp_path / "net.html")
    script = """
    const {item, view} = document.getElementById('figure-roofline').plot;
    const heights = item.roofs.map((roof) => view.up(Math.log10(roof.flops)));
    return item.roofs.map((roof) => {
      const {top, bottom} = view.labels.find(({text}) => roof.label.startsWith(text));
      const away = heights.map((height) => Math.abs(height - (top + bottom) / 2));
      return away.indexOf(Math.min(...away));
    })"""
    assert sized.execute_script(script) == [0, 1]


@pytest.mark.long
def test_on_a_telephone_names_of_roofs_cover_no_point(
    captures: Path, tmp_path: Path, sized: WebDriver
) -> None:
    """They are shorter where there is no room: of 156 TFLOP/s, say, without the unit's name."""
    page(captures / "kineto-a100-sam-eager/trace.json.gz", tmp_path / "net.html")
    _screen(sized, 390, 844, mobile=True)
    drawn(sized, tmp_path / "net.html")
    script = """
    const {item, view} = document.getElementById('figure-roofline').plot;
    const names = view.labels.filter(({text}) => text.includes('TFLOP/s'));
    const beyond = (low, at, high) => Math.max(low - at, 0, at - high);
    return names.flatMap(({text, left, right, top, bottom}) => view.points.filter(
      ({x, y, r}) => Math.hypot(beyond(left, x, right), beyond(top, y, bottom)) < r
    ).map(({place}) => [text, item.name[place]]))"""
    assert sized.execute_script(script) == []


def test_labels_of_a_roofline_stay_beside_their_points(
    captures: Path, tmp_path: Path, sized: WebDriver
) -> None:
    page(captures / "nsys2024.2-a100-pyprof-markers/net.sqlite", tmp_path / "net.html")
    _screen(sized, 400, 900)
    drawn(sized, tmp_path / "net.html")
    script = """
    const {item, view} = document.getElementById('figure-roofline').plot;
    const beyond = (low, at, high) => Math.max(low - at, 0, at - high);
    return view.points.slice(0, item.labelled).flatMap(({x, y, r, place}) => {
      const end = ` ${(100 * item.share[place]).toFixed(1)} %`;
      const box = view.labels.find(({text}) => text.endsWith(end));
      const away = ({left, right, top, bottom}) =>
        Math.hypot(beyond(left, x, right), beyond(top, y, bottom)) - r;
      return box ? [away(box)] : [];
    })"""
    away = sized.execute_script(script)
    assert len(away) > 1
    assert max(away) < 24


def test_names_fit_their_boxes_at_every_zoom(opened: WebDriver) -> None:
    for zoom in (1, 0.1):
        boxes = opened.execute_script(
            "const {plot} = document.getElementById('figure-icicle');"
            "plot.show({x: [0, plot.whole.x[1] * arguments[0]]}); plot.draw();"
            "return plot.view.fitted",
            zoom,
        )
        assert all(box["width"] <= max(box["room"], 0) for box in boxes)
        assert all(box["name"].startswith(box["label"].rstrip("\u2026")) for box in boxes)
        named = {box["name"] for box in boxes if box["label"] == box["name"]}
        assert named >= {"all GPU time", "net", "second"}


def test_the_button_changes_between_light_and_dark(opened: WebDriver) -> None:
    script = (
        "return [getComputedStyle(document.body).backgroundColor, "
        "document.querySelector('.figure').plot.view.colours.ink]"
    )
    before = opened.execute_script(script)
    opened.find_element("css selector", "button.theme").click()
    after = opened.execute_script(script)
    assert before[0] != after[0]
    assert before[1] != after[1]


CLIPPED = """
const wide = (element) => element.scrollWidth > element.clientWidth + 1;
const kinds = ['auto', 'scroll', 'hidden'];
const scrolls = (element) => kinds.includes(getComputedStyle(element).overflowX);
return [document.documentElement.scrollWidth - document.documentElement.clientWidth,
        [...document.querySelectorAll('main *')]
          .filter(element => scrolls(element) && wide(element))
          .filter(element => !element.matches(arguments[0]))
          .map(element => element.outerHTML.slice(0, 80))]
"""


LONG = """
for (const text of document.querySelectorAll('summary, li')) text.append('kernel_'.repeat(20));
for (const table of document.querySelectorAll('table')) {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const cell of table.querySelectorAll('td.text')) {
    if (['op', 'kernel', 'line', 'what'].includes(names[cell.cellIndex])) {
      (cell.querySelector('.pick') ?? cell).textContent = 'kernel_'.repeat(20);
    }
  }
}"""


def _screen(driver: WebDriver, width: int, height: int, *, mobile: bool = False) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture
def sized(opened: WebDriver) -> Iterator[WebDriver]:
    yield opened
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_tables_are_no_wider_than_the_screen(sized: WebDriver) -> None:
    _screen(sized, 1366, 768)
    sized.execute_script(LONG)
    assert sized.execute_script(CLIPPED, "td.text, .pick") == [0, []]


def test_on_a_telephone_only_tables_scroll_sideways(sized: WebDriver, shown: Path) -> None:
    _screen(sized, 390, 844, mobile=True)
    drawn(sized, shown)
    sized.execute_script(LONG)
    assert sized.execute_script(CLIPPED, "td.text, .pick, .scroll, .wide") == [0, []]
    moved = (
        "const table = document.getElementById('table-ops'); table.parentElement.scrollLeft = 200;"
        "const left = (element) => element.getBoundingClientRect().left;"
        "return [table.parentElement.scrollLeft > 100,"
        " left(table.rows[1].cells[0]) - left(table.parentElement)]"
    )
    assert sized.execute_script(moved) == [True, 1]


def test_long_evidence_scrolls_under_its_heading_and_is_whole_on_paper(sized: WebDriver) -> None:
    script = """
    const box = document.querySelector('#advice details[open] .wide');
    const [row] = box.querySelectorAll('tbody tr');
    for (let n = 0; n < 50; n += 1) row.after(row.cloneNode(true));
    box.scrollTop = 400;
    const top = (element) => Math.round(element.getBoundingClientRect().top);
    return [box.scrollTop, top(box.querySelector('th')) - top(box)]"""
    assert sized.execute_script(script) == [400, 0]
    sized.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = "const box = document.querySelector('#advice details[open] .wide');"
    assert sized.execute_script(f"{hidden} return box.scrollHeight - box.clientHeight") == 0


def test_a_tap_shows_what_a_pointer_would(sized: WebDriver) -> None:
    _screen(sized, 400, 800, mobile=True)
    place = """
    const canvas = document.querySelector('#figure-icicle canvas');
    canvas.scrollIntoView({block: 'center'});
    const {left, top, width} = canvas.getBoundingClientRect();
    return {x: left + width / 2, y: top + 10}"""

    def tap(at: dict[str, float]) -> bool:
        for kind, points in (("touchStart", [at]), ("touchEnd", [])):
            touch = {"type": kind, "touchPoints": points}
            sized.execute_cdp_cmd("Input.dispatchTouchEvent", touch)
        return sized.find_element("css selector", ".tip").is_displayed()

    sized.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        assert tap(sized.execute_script(place))
        assert not tap({"x": 1, "y": 1})
    finally:
        sized.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_on_paper_nothing_is_truncated(sized: WebDriver) -> None:
    sized.find_element("css selector", "button.theme").click()
    theme = "return document.documentElement.dataset.theme"
    before = sized.execute_script(theme)
    _screen(sized, 700, 1000)
    sized.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    sized.execute_script(f"{LONG}; window.dispatchEvent(new Event('beforeprint'))")
    assert sized.execute_script(CLIPPED, "none") == [0, []]
    closed = "return document.querySelectorAll('details:not([open])').length"
    assert sized.execute_script(closed) == 0
    assert sized.execute_script(theme) == "light"
    sized.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert sized.execute_script(theme) == before


def test_without_javascript_no_control_is_shown(chromium: WebDriver, shown: Path) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.get(shown.as_uri())
        text = chromium.find_element("css selector", "main").text
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "need JavaScript" in text
    assert "A click on" not in text
    assert "CSV" not in text


def test_axe_finds_nothing(opened: WebDriver) -> None:
    """Deque's accessibility checker, if $AXE_CORE names its axe.min.js, in all states."""
    script = os.environ.get("AXE_CORE")
    if not script:
        pytest.skip("AXE_CORE does not name axe.min.js")
    opened.execute_script(Path(script).read_text(encoding="utf-8"))
    for change in ("", "document.querySelector('button.theme').click()",
                   "document.querySelector('#table-ops tbody tr').click()"):  # fmt: skip
        opened.execute_script(change)
        result = opened.execute_async_script("axe.run(document, {}).then(arguments[0])")
        assert [violation["id"] for violation in result["violations"]] == []


def test_a_formula_in_a_name_stays_text_in_csv(opened: WebDriver) -> None:
    script = (
        "const table = document.getElementById('table-kernels');"
        "table.querySelector('.pick').textContent = arguments[0]; return pyprof.csv(table)"
    )
    for text in ("=1+1", "+cmd", "-x", "@x"):
        rows = list(csv.reader(io.StringIO(opened.execute_script(script, text))))
        assert rows[1][0] == f"'{text}"
        assert "-" in {row[8] for row in rows}  # no arithmetic that could use Tensor Cores


def test_on_a_phone_times_are_on_the_screen_and_links_can_be_touched(
    sized: WebDriver, tmp_path: Path
) -> None:
    page(capture(tmp_path / "net.sqlite"), tmp_path / "net.html")
    _screen(sized, 390, 800, mobile=True)
    drawn(sized, tmp_path / "net.html")
    right, low = sized.execute_script("""
    const box = (element) => element.getBoundingClientRect();
    const touched = document.querySelectorAll("nav a, button:not([hidden]), input, summary");
    const advice = document.querySelectorAll("#advice table tr > :last-child");
    return [Math.max(...[document.querySelectorAll("#table-ops th")[1], ...advice]
        .map((cell) => box(cell).right)),
      Math.min(...[...touched].map(box).filter(({height}) => height).map(({height}) => height))]
    """)
    assert right <= 390
    assert low >= 24
