"""What is kept of a run's log: all of it, or its beginning and its end."""

from __future__ import annotations

import threading

from mainspring.worker.run_reports import LogCapture


def test_what_fits_is_kept_whole_and_nothing_is_none() -> None:
    capture = LogCapture(1024)
    assert capture.text() is None

    capture.add("one")
    capture.add("two ☃")

    assert capture.text() == "one\ntwo ☃"


def test_a_log_that_is_too_long_keeps_its_head_and_its_tail_and_says_what_was_cut() -> None:
    capture = LogCapture(1024)
    lines = [f"line {number:04}" for number in range(1000)]
    for line in lines:
        capture.add(line)

    text = capture.text()

    assert text is not None
    kept = text.splitlines()
    [mark] = [place for place, line in enumerate(kept) if "cut here" in line]
    assert kept[:mark] == lines[:mark]
    assert kept[mark + 1 :] == lines[-(len(kept) - mark - 1) :]
    assert mark == len(kept) - mark - 1 == 51, "half of them each: ten bytes a line"
    assert kept[mark] == "… 898 lines (8980 bytes) were cut here …"


def test_it_never_grows_beyond_its_limit_but_for_the_mark() -> None:
    capture = LogCapture(2048)
    for number in range(500):
        capture.add("☃" * number)

    text = capture.text()

    assert text is not None
    assert len(text.encode()) < 2048 + 100


def test_one_long_line_is_cut_and_leaves_no_half_character() -> None:
    capture = LogCapture(1024)
    capture.add("☃" * 1000)

    assert capture.text() == f"{'☃' * 85}… (3000 bytes)"


def test_what_no_database_takes_is_replaced_and_further_lines_are_set_in() -> None:
    capture = LogCapture(1024)
    capture.add("a\x00b\ud800\n2030-01-01 error forged")

    assert capture.text() == "a\N{REPLACEMENT CHARACTER}b?\n    2030-01-01 error forged"


def test_threads_may_write_at_once() -> None:
    capture = LogCapture(1024 * 1024)

    def write(name: str) -> None:
        for _ in range(500):
            capture.add(name)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    text = capture.text()
    assert text is not None
    assert sorted(text.splitlines()) == sorted("abcd" * 500)
