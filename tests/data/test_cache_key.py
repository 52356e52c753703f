from __future__ import annotations

import tracemalloc

from batchlab.data.cache_key import kept_path


def test_the_path_changes_with_every_name_size_time_order_and_setting(cache):
    paths = [
        kept_path("tokens", "some", ".npy", [("a", 1, 0), ("b", 2, 0)], width=3),
        kept_path("tokens", "some", ".npy", [("b", 2, 0), ("a", 1, 0)], width=3),
        kept_path("tokens", "some", ".npy", [("a", 1, 0), ("b", 3, 0)], width=3),
        kept_path("tokens", "some", ".npy", [("a", 1, 0), ("c", 2, 0)], width=3),
        kept_path("tokens", "some", ".npy", [("a", 1, 0), ("b", 2, 1)], width=3),
        kept_path("tokens", "some", ".npy", [("a' 1\n'b", 2, 0)], width=3),
        kept_path("tokens", "some", ".npy", [("a", 1, 0), ("b", 2, 0)], width=4),
        kept_path("tokens", "some", ".npy", [("a", 1, 0), ("b", 2, 0)], height=3),
    ]

    assert len(set(paths)) == len(paths)
    assert {path.parent for path in paths} == {cache / "tokens"}


def test_names_that_are_no_text_have_a_path_too():
    odd = b"\xff.jpg".decode("utf-8", "surrogateescape")

    assert kept_path("images", "a", "", [(odd, 1, 0)]) != kept_path("images", "a", "", [("\xff.jpg", 1, 0)])


def test_millions_of_files_are_not_held_in_memory():
    tracemalloc.start()
    try:
        kept_path("images", "many", ".npy", ((f"{number:016x}.jpg", number, 0) for number in range(10_000)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
