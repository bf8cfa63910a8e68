"""The shipped dashboard and alert rules use only metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from conduit.observe import families
from conduit.observe.families import Family

FOLDER = Path(__file__).parents[2] / "conf" / "dashboards"
METRIC = re.compile(r"\bconduit_[a-z0-9_]+")
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


def known() -> set[str]:
    names: set[str] = set()
    for family in vars(families).values():
        if isinstance(family, Family):
            names.add(family.name)
            if family.kind == "histogram":
                names.update(family.name + part for part in HISTOGRAM_PARTS)
    return names


def expressions() -> Iterator[str]:
    dashboard = json.loads((FOLDER / "conduit.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for variable in dashboard["templating"]["list"]:
        yield variable["query"]
    alerts = yaml.safe_load((FOLDER / "alerts.yml").read_text())
    for group in alerts["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def test_every_metric_of_every_expression_exists() -> None:
    used = {name for text in expressions() for name in METRIC.findall(text)}
    assert len(used) > 15
    assert used <= known(), used - known()


def test_brackets_balance() -> None:
    for text in expressions():
        for opening, closing in ("()", "[]", "{}"):
            assert text.count(opening) == text.count(closing), text


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads((FOLDER / "conduit.json").read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells


def test_alerts_have_what_a_pager_shows() -> None:
    alerts = yaml.safe_load((FOLDER / "alerts.yml").read_text())
    for rule in alerts["groups"][0]["rules"]:
        assert rule["labels"]["severity"] in ("page", "warn")
        assert rule["annotations"]["summary"]
