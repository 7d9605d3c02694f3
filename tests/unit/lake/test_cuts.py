"""The file of published cuts survives being cut at any byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.errors import DefiniteError
from tailrace.lake.cuts import Cuts
from tailrace.model.cut import CutOutline, CutTable, PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.storage.line_file import LineFile


def cut(seq: int) -> PublishedCut:
    position = SourcePosition(seq * 100, seq * 1000, b"gtid\n")
    return PublishedCut(seq, position, {"public.orders": CutTable(seq, 1, seq), "public.é": CutTable(2 * seq, 3, 0)})


def test_a_crash_at_any_byte_keeps_every_whole_line_and_the_next_append_continues(tmp_path: Path) -> None:
    whole = Cuts(LineFile(tmp_path / "whole.jsonl"))
    for seq in (1, 2, 3):
        whole.append(cut(seq))
    content = (tmp_path / "whole.jsonl").read_bytes()
    for length in range(len(content) + 1):
        path = tmp_path / "torn.jsonl"
        path.write_bytes(content[:length])
        kept = content[:length].count(b"\n")
        assert Cuts(LineFile(path)).all() == [cut(seq) for seq in range(1, kept + 1)]
        Cuts(LineFile(path)).append(cut(9))
        assert Cuts(LineFile(path)).all() == [cut(seq) for seq in range(1, kept + 1)] + [cut(9)]


def test_the_newest_wanted_cut_is_found_however_far_back_it_lies(tmp_path: Path) -> None:
    cuts = Cuts(LineFile(tmp_path / "cuts.jsonl", recent_bytes=500))
    assert cuts.newest() is None
    for seq in range(1, 50):
        cuts.append(cut(seq))
    assert cuts.newest() == cut(49)
    assert cuts.newest(lambda each: each.seq <= 3) == cut(3)
    assert cuts.newest(lambda each: each.seq > 99) is None
    assert len(cuts.all()) == 49


def test_the_newest_cut_of_a_table_is_found_however_far_back_it_lies(tmp_path: Path) -> None:
    cuts = Cuts(LineFile(tmp_path / "cuts.jsonl", recent_bytes=500))
    assert cuts.newest_with("public.orders") is None
    cuts.append(cut(1))
    twin = replace(
        cut(2), tables={'public."a"": [public.orders': CutTable(1, 1, 1), 'x"public.orders': CutTable(1, 1, 1)}
    )
    for each in [twin, *(replace(cut(seq), tables={"public.é": CutTable(seq, 1, seq)}) for seq in range(3, 50))]:
        cuts.append(each)
    assert cuts.newest_with("public.orders") == cut(1)
    assert cuts.newest_with('x"public.orders') == twin
    assert (cuts.newest_with("public.é") or cut(0)).seq == 49
    assert cuts.newest_with("public.none") is None


def test_a_damaged_line_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "cuts.jsonl").write_text('{"seq": 1, "position"\n')
    with pytest.raises(DefiniteError, match=r"cuts\.jsonl is damaged"):
        Cuts(LineFile(tmp_path / "cuts.jsonl")).all()


def test_old_cuts_leave_as_a_whole_and_appending_continues(tmp_path: Path) -> None:
    cuts = Cuts(LineFile(tmp_path / "cuts.jsonl"))
    for seq in (1, 2, 3):
        cuts.append(cut(seq))
    before, mark = cuts.end, cuts.mark
    cuts.append(cut(4))
    assert cuts.after(before) == [cut(4)]
    cuts.replace([cut(2), cut(4)])
    assert cuts.mark != mark
    assert cuts.all() == [cut(2), cut(4)]
    assert [cuts.has(cut(seq)) for seq in (1, 2, 3, 4)] == [False, True, False, True]
    cuts.append(cut(5))
    assert cuts.all() == [cut(2), cut(4), cut(5)]
    assert list(tmp_path.iterdir()) == [tmp_path / "cuts.jsonl"]


def test_a_cut_without_its_tables_is_read_from_the_same_line_whatever_a_table_is_called(tmp_path: Path) -> None:
    cuts = Cuts(LineFile(tmp_path / "cuts.jsonl"))
    names = ['a"},"published":7', ',"tables":{', "plain", "é\n"]
    for seq in range(1, 6):
        tables = {f"public.{name}": CutTable(seq, 1, seq) for name in names[: seq - 1]}
        cuts.append(PublishedCut(seq, SourcePosition(seq * 100, seq * 1000, b"gtid"), tables, seq * 10))
    assert list(cuts.outlines()) == [CutOutline(each.seq, each.position, each.published_us) for each in cuts.all()]
    assert cuts.last(2) == cuts.all()[-2:]
    assert cuts.last(9, lambda each: each.position.time_us <= 2000) == cuts.all()[:2]
    with (tmp_path / "cuts.jsonl").open("a") as file:
        file.write('{"seq":6,"position')
    assert len(list(cuts.outlines())) == 5
    (tmp_path / "cuts.jsonl").write_text('{"seq": 1, "position"\n')
    with pytest.raises(DefiniteError, match=r"cuts\.jsonl is damaged"):
        list(cuts.outlines())
