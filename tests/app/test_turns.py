"""What is done to the page while it waits for an answer: nothing is lost, and nothing is undone by an older answer.

The server is held up on purpose, so that every order of events that matters happens in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.app.browser import LINES, drop, new, table, until

ROWS = "day,rabbits\n" + "".join(f"{i},{1 + i % 3}\n" for i in range(12))
MODEL = '[states]\nx = "-k*x"\n[outputs]\ny = "x"\n'


@contextmanager
def held(page: Any, path: str) -> Iterator[list[Any]]:
    """Requests wait until the end of the block, in the order in which they came."""
    waiting: list[Any] = []
    page.route(path, lambda route: waiting.append(route))  # noqa: PLW0108 - Playwright marks what it is given
    yield waiting
    for route in waiting:
        route.continue_()
    page.unroute(path)


def asked(waiting: list[Any], page: Any, count: int = 1) -> None:
    """Until the page has asked; waiting lets the browser go on."""
    until(lambda: page.wait_for_timeout(20) or len(waiting) >= count, "the page has not asked")


def test_what_is_written_while_a_table_is_read_stays(page: Any) -> None:
    new(page, LINES)
    with held(page, "**/take") as waiting:
        drop(page, table("day.csv", ROWS))
        asked(waiting, page)
        page.fill("#equations", LINES + "\n# a remark")
    page.wait_for_selector("select[aria-label='What rabbits is']")
    assert page.input_value("#equations").endswith("# a remark")
    page.wait_for_selector("#fit:enabled")


def test_a_language_chosen_and_a_table_dropped_at_once_are_both_taken(page: Any) -> None:
    new(page, LINES)
    page.wait_for_selector(".chips li")
    with held(page, "**/translate") as waiting:
        page.click(".segments label:has-text('TOML')")
        asked(waiting, page)
        drop(page, table("day.csv", ROWS))
    page.wait_for_selector("#fit:enabled")
    assert "[states]" in page.input_value("#equations")
    # What is written after the choice is in the new language already.
    with held(page, "**/translate") as waiting:
        page.click(".segments label:has-text('Equations')")
        asked(waiting, page)
        page.fill("#equations", LINES + "\n# by hand")
    page.wait_for_selector("#mistake", state="hidden")
    page.wait_for_selector("#saved:has-text('Saved')")
    assert page.input_value("#equations").endswith("# by hand")
    assert page.is_checked("input[value=equations]")


def test_a_mistake_that_is_mended_does_not_come_back(page: Any) -> None:
    new(page, "x' = -k*x")
    with held(page, "**/look") as waiting:
        page.fill("#equations", "x' = -k^x")
        asked(waiting, page)
        page.fill("#equations", LINES)
        route = waiting.pop(0)
        with page.expect_response("**/look"):
            route.continue_()
        page.wait_for_timeout(50)
        assert page.is_hidden("#mistake")
    page.wait_for_selector(".chips li")
    assert page.is_hidden("#mistake")


def test_files_get_their_sentences_in_order_and_a_model_can_be_put_back(page: Any) -> None:
    new(page, LINES)
    page.wait_for_selector(".chips li")
    with held(page, "**/files/*") as waiting:
        drop(page, table("one.exe", "1"))
        drop(page, table("two.xlsx", "2"))
        asked(waiting, page)
    page.wait_for_selector("#banner:has-text('one.exe')")
    page.wait_for_selector("#banner:has-text('two.xlsx')")
    drop(page, table("other.toml", MODEL))
    page.wait_for_selector("#banner:has-text('has given way to other.toml')")
    assert "one.exe" not in page.inner_text("#banner")
    assert page.input_value("#equations") == MODEL
    page.click("#banner button:has-text('Undo')")
    assert page.input_value("#equations") == LINES
    assert page.is_checked("input[value=equations]")


def resting(page: Any, selector: str) -> dict[str, float]:
    """Where an element is once nothing that comes onto the page moves it any more."""
    page.locator(selector).scroll_into_view_if_needed()
    boxes = [page.locator(selector).bounding_box()]
    while len(boxes) < 6 or any(box != boxes[-1] for box in boxes[-6:]):
        page.wait_for_timeout(100)
        boxes.append(page.locator(selector).bounding_box())
    return boxes[-1]


def test_a_slider_in_a_hand_stays_there(page: Any) -> None:
    new(page, LINES)
    page.wait_for_selector("input[aria-label='k1, slider']")
    box = resting(page, "input[aria-label='k1, slider']")
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, height)
    page.mouse.down()
    with page.expect_response("**/move"):
        page.mouse.move(box["x"] + 0.9 * box["width"], height)
    held_at = page.input_value("input[aria-label='Value of k1']")
    page.wait_for_timeout(200)
    page.mouse.up()
    page.wait_for_selector("#saved:has-text('Saved')")
    assert page.input_value("input[aria-label='Value of k1']") == held_at
    page.reload()
    page.wait_for_selector("input[aria-label='k1, slider']")
    assert page.input_value("input[aria-label='Value of k1']") == held_at


def test_what_is_written_last_is_kept_when_the_page_is_loaded_again(page: Any) -> None:
    new(page, LINES)
    page.wait_for_selector("#saved:has-text('Saved')")
    page.fill("#equations", LINES + "\n# the last")
    page.reload()
    page.wait_for_selector("#equations")
    until(lambda: page.input_value("#equations").endswith("# the last"), "what was written last is lost")


@pytest.mark.slow
def test_tabs_that_change_different_things_are_put_together(page: Any, context: Any) -> None:
    new(page, LINES)
    page.wait_for_selector("#saved:has-text('Saved')")
    other = context.new_page()
    other.goto(page.url)
    other.wait_for_selector(".chips li")
    with held(page, "**/state"):
        other.check("text=All unknowns are positive")
        other.wait_for_selector("#saved:has-text('Saved')")
        page.fill("#equations", LINES + "\n# from the first tab")
        page.wait_for_selector("#saved:has-text('Saved')")
    until(lambda: page.is_checked("text=All unknowns are positive"), "the first tab does not follow")
    until(lambda: "first tab" in other.input_value("#equations"), "the second tab does not follow")
    assert page.is_hidden("#banner")
