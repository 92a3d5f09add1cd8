"""The page for browsers: one file, nothing from the network, everything escaped, and a browser shows it."""

from __future__ import annotations

import html.parser
import re
import shutil
import struct
import subprocess
import zlib

import pytest
import torch

import minidynamo

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def page():
    def scaled(x, tag, lr):
        y = x * lr
        if y.sum() > 0 and tag != "<script>alert(1)</script>":
            y = y + 1
        return y

    f = minidynamo.optimize("eager")(scaled)
    with minidynamo.record() as found:
        for i in range(3):
            f(torch.ones(2), f"<b>{i}</b>", 1.0 / (i + 1))
    return found.to_html()


class Reader(html.parser.HTMLParser):
    """Checks that tags nest, and collects what a page asks for."""

    VOID = ("meta", "input", "link", "br", "img")

    def __init__(self):
        super().__init__()
        self.open, self.asks, self.ids, self.targets = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "srcset") or name == "href" and not value.startswith("#"):
                self.asks.append(value)
            elif name == "id":
                self.ids.append(value)
            elif name == "data-to":
                self.targets.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_well_formed_and_asks_for_nothing(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == [] and reader.asks == []
    assert "url(" not in page and "@import" not in page and "fetch(" not in page
    outside = set(re.findall(r"https?://[^\"' <]+", page))
    assert outside <= {"http://www.w3.org/2000/svg"}
    assert len(reader.ids) == len(set(reader.ids)) and set(reader.targets) <= set(reader.ids)


def test_text_of_the_program_is_escaped(page):
    assert "<script>alert" not in page and "<b>0</b>" not in page
    assert page.count("<script>") == 1


def test_it_has_every_part(page):
    for part in (
        "Recompilations",
        "Graph breaks",
        "Timeline",
        "Compiled frames",
        "bytecode before",
        "bytecode after",
        "<svg",
    ):
        assert part in page
    assert "prefers-color-scheme:dark" in page and 'id="search"' in page and 'tabindex="0"' in page


def pixels(path):
    """(width, height, set of colours of every 7th row) of an 8-bit PNG."""
    data = path.read_bytes()
    at, body, width, height, depth = 8, b"", 0, 0, 0
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind = data[at + 4 : at + 8]
        if kind == b"IHDR":
            width, height, bits, colour = struct.unpack(">IIBB", data[at + 8 : at + 18])
            depth = {2: 3, 6: 4}[colour]
            assert bits == 8
        elif kind == b"IDAT":
            body += data[at + 8 : at + 8 + length]
        at += 12 + length
    raw, stride = zlib.decompress(body), width * depth
    previous, rows = bytearray(stride), []
    for y in range(height):
        filter_, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for i in range(stride):
            left = line[i - depth] if i >= depth else 0
            up, corner = previous[i], previous[i - depth] if i >= depth else 0
            guess = left + up - corner
            near = min(
                (abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner)
            )[2]
            line[i] = (line[i] + (0, left, up, (left + up) // 2, near)[filter_]) & 255
        previous = line
        rows.append(bytes(line))
    colours = {row[i : i + 3] for row in rows[::7] for i in range(0, stride, depth)}
    return width, height, colours


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)")
@pytest.mark.parametrize(("scheme", "paper"), [(1, b"\xff\xff\xff"), (0, b"\x14\x17\x1d")])
def test_a_browser_shows_it(page, tmp_path, scheme, paper):
    """Rendered in both colour schemes: the paper's colour is there, and so are those of text, links and causes."""
    (tmp_path / "page.html").write_text(page)
    shot = tmp_path / "shot.png"
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--blink-settings=preferredColorScheme={scheme}",
    ]
    command += ["--window-size=700,500", f"--screenshot={shot}", f"file://{tmp_path}/page.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    width, height, colours = pixels(shot)
    assert (width, height) == (700, 500)
    assert paper in colours and len(colours) > 20


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)")
def test_its_script_runs(page, tmp_path):
    """Searching hides rows, arrow keys move, Enter opens the page of a cause."""
    probe = """<script>
const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
const rows = [...document.querySelectorAll("table[aria-label='compiled frames'] tbody tr")];
rows[0].focus(); key("ArrowDown"); const moved = document.activeElement === rows[1];
key("End"); const last = document.activeElement === rows[rows.length - 1];
document.querySelector("table[aria-label=causes] tbody tr").focus(); key("Enter");
const opened = document.querySelector("#cause-1").open;
const box = document.querySelector("#search"); box.value = "md201"; box.dispatchEvent(new Event("input"));
const hidden = document.querySelectorAll("[hidden]").length;
document.title = JSON.stringify([moved, last, opened, hidden > 0]);
</script></body>"""
    (tmp_path / "page.html").write_text(page.replace("</body>", probe))
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        f"file://{tmp_path}/page.html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert "<title>[true,true,true,true]</title>" in done.stdout
