"""The documents that the findings of a check name, busiest first: one table that can be searched and filtered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gonio.core.packed_page_data import Packed
from gonio.core.readable_label import readable
from gonio.findings.check_run import Check
from gonio.report.frame import NAME

WRONG = {"not-finite": "not finite", "empty-rows": "empty", "constant-rows": "constant"}


class Documents:
    """Documents in the order in which they were first named, with what is known of each.

    flags   by what documents stand out for: their places
    """

    def __init__(self, c: Check) -> None:
        self.places: dict[str, int] = {}
        self.lists: dict[int, int] = {}
        self.copy_of: dict[int, int] = {}
        self.kept: dict[int, float] = {}
        self.flags: dict[str, list[int]] = {}
        of: dict[str, Mapping[str, Any]] = {f.key: f.data for f in c.findings}
        self._counted(c, of)
        self._copied(of)
        for x in of.get("drift", {}).get("moved", ()):
            self.kept[self._place(x["id"])] = float(x["kept"])
        self._flag("moved most", self.kept)
        for key, words in WRONG.items():
            self._flag(words, map(self._place, of.get(key, {}).get("ids", ())))
        self.total = int(c.about["shape"][0])

    def __len__(self) -> int:
        return len(self.places)

    def _place(self, name: Any) -> int:
        return self.places.setdefault(str(name), len(self.places))

    def _flag(self, words: str, places: Iterable[int]) -> None:
        found = list(dict.fromkeys(places))
        if found:
            self.flags[words] = found

    def _counted(self, c: Check, of: dict[str, Mapping[str, Any]]) -> None:
        for x in of.get("hubs", {}).get("busiest", ()):
            self.lists[self._place(x["id"])] = x["lists"]
        least = (c["hubs"].threshold or 0) if "hubs" in of else 0
        self._flag("more than chance", [i for i, n in self.lists.items() if n > least])
        idle = [self._place(x) for x in of.get("unfound", {}).get("ids", ())]
        self.lists |= dict.fromkeys(idle, 0)
        self._flag("in no list", idle)

    def _copied(self, of: dict[str, Mapping[str, Any]]) -> None:
        for first, *others in of.get("duplicates", {}).get("groups", ()):
            self.copy_of |= {self._place(x): self._place(first) for x in others}
        self._flag("copies", self.copy_of)
        near = of.get("near-duplicates", {}).get("pairs", ())
        self._flag("nearly copies", (self._place(x) for pair in near for x in pair[:2]))

    def carried(self, lay: Packed) -> dict[str, Any]:
        """What the page's script works with."""
        names = [x[:NAME] for x in self.places]
        looks = {i: readable(x) for i, x in enumerate(names)}
        rows = range(len(names))
        columns = [_column("lists", "in lists", "number", lay.decimal([self.lists.get(i) for i in rows]))]
        if self.copy_of:
            columns.append(_column("copy_of", "copy of", "label", lay.whole([self.copy_of.get(i) for i in rows])))
        if self.kept:
            kept = [None if i not in self.kept else round(100 * self.kept[i], 1) for i in rows]
            columns.append(_column("kept", "% of neighbours kept", "number", lay.decimal(kept)))
        return {
            "titles": ["document", "place"],
            "first": 1,
            "names": names,
            "named": True,
            "shown": {i: x for i, x in looks.items() if x != names[i]},
            "columns": columns,
            "flags": self.flags,
            "near": None,
            "pairs": [],
            "measure": "",
        }


def _column(key: str, title: str, kind: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"key": key, "title": title, "kind": kind, "values": values}
