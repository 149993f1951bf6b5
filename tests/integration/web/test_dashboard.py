# SPDX-License-Identifier: Apache-2.0
"""The dashboard in headless Chromium: log in, see a scene, turn it, paint, undo, and a second page
that sees all of it. Screenshots stay in the build tree's folder screenshots/."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from harness import BIN, SLOW, Daemon, http_call, running, wait_until
from playwright.sync_api import Browser, Page, expect, sync_playwright

SHOTS = BIN.parent / "screenshots"
TOKENS = {"alice": ("read,write", "alice's"), "bob": ("read", "bob's")}
MARKUP = '<img src=x onerror="document.title=\'owned\'">'
WAIT_MS = 90_000 * SLOW  # a busy machine may need it
# Layers are drawn by WebGL2, on a machine without a GPU by software, which has to be asked for.
SOFTWARE_WEBGL = [
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("dashboard")
    tokens = directory / "tokens"
    tokens.write_text(
        "".join(
            f"{name} {scopes} {hashlib.sha256(token.encode()).hexdigest()}\n"
            for name, (scopes, token) in TOKENS.items()
        )
    )
    tokens.chmod(0o600)
    with running(directory / "d", {"auth": {"tokens_file": str(tokens)}}) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    SHOTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["VOXELD_CHROMIUM"],
            args=["--no-sandbox", "--headless=new", *SOFTWARE_WEBGL],
        )
        yield browser
        browser.close()


class Visitor:
    """A person with a browser of their own; what the page throws is a failure."""

    def __init__(self, browser: Browser, daemon: Daemon, name: str, **options: Any) -> None:
        size = {"width": 860, "height": 560}
        self.context = browser.new_context(viewport=size, **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("console", self.note)
        self.url = f"http://127.0.0.1:{daemon.http_port}"
        self.token = TOKENS[name][1]

    def note(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert self.errors == []

    def log_in(self, path: str = "/") -> None:
        self.page.goto(self.url + path)
        self.page.get_by_label("Token").fill(self.token)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.locator("#login")).to_be_hidden(timeout=WAIT_MS)

    def shot(self, name: str) -> None:
        self.page.screenshot(path=SHOTS / f"{name}.png")

    def picture(self) -> list[int]:
        """Thirty-two by thirty-two pixels of the picture."""
        return self.page.evaluate(
            """() => {
              const from = document.querySelector('voxel-view canvas');
              const to = new OffscreenCanvas(32, 32).getContext('2d');
              to.drawImage(from, 0, 0, 32, 32);
              return [...to.getImageData(0, 0, 32, 32).data];
            }"""
        )

    def settle(self) -> list[int]:
        """Waits until the picture is as sharp as it gets."""
        expect(self.page.locator('voxel-view[data-sharp="true"]')).to_be_visible(timeout=WAIT_MS)
        return self.picture()

    def centre(self) -> tuple[float, float]:
        box = self.page.locator("voxel-view").bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def n_changed(a: list[int], b: list[int]) -> int:
    """Pixels of another colour. Those at edges differ a little, as pictures are more or less sharp
    by what the machine affords."""
    differences = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return sum(max(differences[i : i + 3]) > 75 for i in range(0, len(differences), 4))


FEW = 3


def test_see_turn_paint_undo_and_a_second_page_sees_it(daemon: Daemon, browser: Browser) -> None:
    headers = {"Authorization": "Bearer alice's"}

    def scene() -> dict[str, Any]:
        return http_call(daemon, "GET", f"/v1/scenes/{name}", headers=headers).json()["scene"]

    with Visitor(browser, daemon, "alice") as alice, Visitor(
        browser, daemon, "bob", color_scheme="dark"
    ) as bob:
        alice.page.goto(alice.url)
        alice.page.get_by_label("Token").fill("guess")
        alice.page.get_by_role("button", name="Log in").click()
        expect(alice.page.locator("#login-error")).to_contain_text("not known", timeout=WAIT_MS)
        alice.shot("login")
        alice.log_in()
        alice.page.get_by_role("button", name="Make an example scene").click()
        expect(alice.page.locator("voxel-view")).to_be_visible(timeout=WAIT_MS)
        name = re.search(r"#/scene/([^?]+)", alice.page.url)[1]  # type: ignore[index]
        at_first = alice.settle()
        assert len({tuple(at_first[i : i + 3]) for i in range(0, len(at_first), 4)}) > 20
        alice.shot("scene")
        made = scene()

        x, y = alice.centre()
        alice.page.mouse.move(x, y)
        alice.page.mouse.down()
        for i in range(8):
            alice.page.mouse.move(x + 12 * i, y + 3 * i)
        alice.page.mouse.up()
        turned = alice.settle()
        assert n_changed(at_first, turned) > FEW, "turning changes the picture"
        assert "eye=" in alice.page.url, "the address has the camera"

        # Bob opens the same address, so he sees the same; he may look and not paint.
        bob.log_in("/" + alice.page.url.split("/", 3)[3])
        assert n_changed(bob.settle(), turned) <= FEW, "one address, one picture"
        expect(bob.page.locator('[data-tool="paint"]')).to_be_disabled()
        bob.shot("scene-dark")

        alice.page.keyboard.press("b")
        alice.page.locator(".swatch").nth(11).click()
        for _ in range(3):
            alice.page.keyboard.press("]")  # a larger brush
        alice.page.mouse.click(x, y)
        wait_until(lambda: int(scene()["version"]) > int(made["version"]), 10, "it is painted")
        painted = scene()
        assert int(painted["nOccupied"]) > int(made["nOccupied"])
        for visitor in (alice, bob):
            expect(visitor.page.locator(".timeline output")).to_contain_text(
                f"version {painted['version']}", timeout=WAIT_MS
            )
            assert n_changed(visitor.settle(), turned) > FEW, "the paint is seen"
            visitor.shot(f"painted-{'alice' if visitor is alice else 'bob'}")

        alice.page.keyboard.press("Control+z")
        wait_until(lambda: scene()["digest"] == made["digest"], 10, "it is undone")
        expect(bob.page.locator(".timeline output")).to_contain_text("undone", timeout=WAIT_MS)
        assert n_changed(bob.settle(), turned) <= FEW, "the second page sees the undo"

        alice.page.locator(".timeline input").fill("1")
        expect(alice.page.locator(".timeline output")).to_contain_text("version 2", timeout=WAIT_MS)
        expect(alice.page).to_have_url(re.compile("at=2"), timeout=WAIT_MS)
        bob.page.goto(bob.url + "/#/")
        expect(bob.page.locator(".tile")).to_have_count(1, timeout=WAIT_MS)
        wait_until(
            lambda: bob.page.locator(".tile img").evaluate("i => i.naturalWidth > 0"),
            20,
            "its tile has a picture",
        )
        bob.shot("overview-dark")


def test_names_with_markup_stay_text(daemon: Daemon, browser: Browser) -> None:
    headers = {"Authorization": "Bearer alice's", "Content-Type": "application/json"}
    spec = {
        "voxelSizeM": 0.1,
        "depth": 7,
        "materialBits": 8,
        "palette": [{"name": "none"}, {"name": "red", "rgb": 0xCC4444}],
        "frameId": MARKUP,
    }
    body = {"name": "marked", "spec": spec}
    assert http_call(daemon, "POST", "/v1/scene_create", body, headers).status == 200
    ball = {"centre": {"x": 0, "y": 0, "z": 0}, "radius": 3}
    edit = {"name": "marked", "operations": [{"ball": ball, "material": 1}]}
    for i in range(40):  # until one of them takes 10 ms, and is on the list of slow ones
        ball["radius"] = 3 + 0.05 * i
        sent = headers | {"X-Request-Id": MARKUP[:60]}
        reply = http_call(daemon, "POST", "/v1/scene_edit", edit, sent)
        assert reply.status == 200, reply.body
        render = {"name": "marked", "width": 800, "height": 600, "encode": "RENDER_JPEG"}
        reply = http_call(daemon, "POST", "/v1/scene_render", render, sent)
        assert reply.status == 200, reply.body
        slow = http_call(daemon, "GET", "/v1/status", headers=headers).json().get("slow", [])
        if any(s["requestId"] == MARKUP[:60] for s in slow):
            break
    with Visitor(browser, daemon, "alice") as alice:
        alice.log_in("/#/scene/marked")
        alice.settle()
        expect(alice.page.locator(".side")).to_contain_text(MARKUP, timeout=WAIT_MS)
        alice.page.mouse.click(*alice.centre())
        expect(alice.page.locator(".side")).to_contain_text("1 red", timeout=WAIT_MS)
        alice.page.goto(alice.url + "/#/status")
        expect(alice.page.locator("tbody").nth(1)).to_contain_text(MARKUP[:60], timeout=WAIT_MS)
        alice.page.wait_for_timeout(2500)
        alice.shot("status")
        # One that runs is above them, for as long as it runs.
        long = {**render, "mode": "RENDER_PATH", "samples": 64, "encode": "RENDER_TENSOR"}
        sent = headers | {"X-Request-Id": MARKUP[:60], "X-Voxeld-Timeout-Ms": "30000"}
        path = threading.Thread(
            target=http_call, args=(daemon, "POST", "/v1/scene_render", long, sent)
        )
        path.start()
        running_ones = alice.page.locator("tbody").nth(0)
        expect(running_ones).to_contain_text("scene_render", timeout=WAIT_MS)
        expect(running_ones).to_contain_text(MARKUP[:60])
        expect(running_ones).to_contain_text("runs")
        running_ones.scroll_into_view_if_needed()
        alice.shot("status-running")
        path.join()
        expect(running_ones).to_contain_text("Nothing runs", timeout=WAIT_MS)
        assert alice.page.locator("img[src=x]").count() == 0
        assert alice.page.title() == "voxeld"


def login_url(daemon: Daemon, directory: Path, name: str, *options: str) -> str:
    """Runs `voxelctl token login` with the token of a name."""
    file = directory / f"token-of-{name}"
    file.write_text(TOKENS[name][1])
    run = subprocess.run(
        [BIN / "voxelctl", "--url", daemon.tcp, "--token-file", file, "token", "login", *options],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.strip()


def test_login_url_logs_a_browser_in_and_shows_its_token_to_nobody(
    daemon: Daemon, browser: Browser, tmp_path: Path
) -> None:
    url = login_url(daemon, tmp_path, "alice", "--scopes", "read")
    address, token = url.split("/#token=")
    asked: list[str] = []
    with Visitor(browser, daemon, "alice") as alice:
        assert address == alice.url
        alice.page.on("request", lambda request: asked.append(request.url))
        alice.page.goto(url)
        expect(alice.page.locator("#who")).to_have_text("alice (read)", timeout=WAIT_MS)
        assert alice.page.url == f"{address}/#/"
        # A link of somebody else's does not change who this is.
        other = login_url(daemon, tmp_path, "bob")
        alice.page.evaluate("url => { location.hash = url.split('/')[3]; }", other)
        expect(alice.page.locator("#notes")).to_contain_text("alice already", timeout=WAIT_MS)
        expect(alice.page.locator("#who")).to_have_text("alice (read)")
        assert alice.page.url == f"{address}/#/"
        alice.page.go_back()
        assert "token=" not in alice.page.url
        alice.page.goto(f"{address}/#/")
        alice.page.get_by_role("button", name="Log out").click()
        expect(alice.page.locator("#login")).to_be_visible(timeout=WAIT_MS)
        # In an open page, too: first one that was changed on its way.
        alice.page.evaluate("hash => { location.hash = hash; }", f"#token={token[:-2]}xx")
        expect(alice.page.locator("#login-error")).to_contain_text("this link", timeout=WAIT_MS)
        alice.page.evaluate("hash => { location.hash = hash; }", f"#token={token}")
        expect(alice.page.locator("#who")).to_have_text("alice (read)", timeout=WAIT_MS)
        expect(alice.page.locator("#login")).to_be_hidden()
    assert asked and not any(token in url for url in asked)
    assert token not in "".join(daemon.lines)


def test_pages_have_labels_and_work_by_keyboard(daemon: Daemon, browser: Browser) -> None:
    """Each control has a name, text has contrast, and the scene is moved without a mouse."""
    with Visitor(browser, daemon, "alice") as alice:
        alice.log_in()
        alice.page.get_by_role("button", name="Make an example scene").click()
        alice.settle()
        scene = "/" + alice.page.url.split("/", 3)[3]
        for theme in ("light", "dark"):
            alice.page.evaluate("t => { document.documentElement.dataset.theme = t; }", theme)
            assert alice.page.evaluate(UNNAMED) == []
            assert alice.page.evaluate(FAINT) == [], theme
            for page in ("console/scene_edit", "tutorial", "status", "api"):
                alice.page.goto(f"{alice.url}/#/{page}")
                alice.page.wait_for_timeout(700)
                assert alice.page.evaluate(UNNAMED) == [], page
                assert alice.page.evaluate(FAINT) == [], (theme, page)
            alice.page.goto(alice.url + scene)
            alice.settle()
        view = alice.page.locator("voxel-view")
        view.focus()
        before = alice.settle()
        alice.page.keyboard.press("ArrowLeft")
        alice.page.keyboard.down("w")
        alice.page.wait_for_timeout(300)
        alice.page.keyboard.up("w")
        assert n_changed(before, alice.settle()) > FEW
        alice.page.keyboard.press("r")
        alice.page.keyboard.press("?")
        expect(alice.page.get_by_role("dialog", name="Help")).to_be_visible()
        alice.shot("help")
        alice.page.keyboard.press("Escape")
        alice.page.set_viewport_size({"width": 420, "height": 860})
        alice.settle()
        assert alice.page.evaluate("document.documentElement.scrollWidth") <= 420
        alice.shot("phone")


def test_axe_finds_nothing_on_any_page(daemon: Daemon, browser: Browser) -> None:
    """The rules of axe-core (WCAG's A and AA, and good practice), on every page, in both themes, at
    the login, and with a dialog open."""
    axe = Axe()
    found = []

    def look(page: Page, name: str) -> None:
        for rule in axe.run(page).response["violations"]:
            nodes = [node["html"][:160] for node in rule["nodes"][:3]]
            found.append((name, rule["id"], rule["impact"], nodes))

    with Visitor(browser, daemon, "alice") as alice:
        page = alice.page
        page.goto(alice.url)
        expect(page.locator("#login")).to_be_visible(timeout=WAIT_MS)
        look(page, "login")
        alice.log_in()
        page.get_by_role("button", name="Make an example scene").click()
        alice.settle()
        scene = page.url.split("#", 1)[1]
        for theme in ("light", "dark"):
            for path in (scene, "/", "/console/scene_edit", "/tutorial", "/status", "/api"):
                page.goto(f"{alice.url}/#{path}")
                page.evaluate("t => { document.documentElement.dataset.theme = t; }", theme)
                page.wait_for_timeout(700)
                look(page, f"{path} {theme}")
                alice.shot(f"axe{path.split('/')[1] or 'overview'}-{theme}".split("?")[0])
        page.goto(f"{alice.url}/#{scene}")
        alice.settle()
        page.locator("voxel-view").focus()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Help")).to_be_visible()
        look(page, "help")
    assert not found, "\n".join(map(str, found))


UNNAMED = """() => [...document.querySelectorAll(
  'button, input, a, voxel-view, dialog, textarea, select')]
  .filter((e) => e.offsetParent !== null)
  .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.title
                   || e.labels?.length))
  .map((e) => e.outerHTML)"""

# Texts whose contrast with the nearest background is below 4.5 to 1 (WCAG's AA), but for controls
# that cannot be used.
FAINT = """() => {
  const numbers = (s) => s.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0.8) return c;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')].filter((e) => e.offsetParent !== null
      && !e.closest(':disabled')
      && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .filter((e) => {
      const a = light(numbers(getComputedStyle(e).color));
      const b = light(ground(e));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
    }).map((e) => `${e.className}: ${e.textContent.slice(0, 40)}`);
}"""
