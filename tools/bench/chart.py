"""Draws the figures of a bench run as an SVG: what was measured, as shares of its bar.

`python -m tools.bench.chart RESULTS.json CHART.svg`; the JSON is that of `tools/bench/run --json`.
"""

from __future__ import annotations

import json
import re
import sys
from html import escape
from pathlib import Path
from typing import Any, Final

_ROW: Final = 26
_LABEL: Final = 430
_PLOT: Final = 360
_WIDTH: Final = _LABEL + _PLOT + 90
#: The bar itself stands at this share of the plot; what is twice as good ends at its edge.
_AT: Final = 0.5


def chart(bars: list[dict[str, Any]], machine: dict[str, Any]) -> str:
    """Return the chart of the bars that have a limit in their text."""
    limits = [(bar, _limit(bar["bar"])) for bar in bars]
    rows = [(bar, limit) for bar, limit in limits if limit is not None]
    height = 64 + _ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="10" y="20" font-size="14" font-weight="bold">Measured against the bars '
        "(line: the bar; longer is better)</text>",
        f'<text x="10" y="38" fill="#555">{machine["cores"]} cores, Python '
        f"{escape(machine['python'])}</text>",
    ]
    for place, (bar, (bound, at_least)) in enumerate(rows):
        y = 50 + place * _ROW
        value = float(bar["value"])
        # for an upper limit less is better: what stays below it reaches beyond the line
        quality = value / bound if at_least else bound / max(value, bound / 100)
        length = min(1.0, max(0.005, quality * _AT)) * _PLOT
        colour = "#2e7d32" if bar["ok"] else "#c62828"
        parts += [
            f'<text x="10" y="{y + 15}">{escape(bar["bar"])}</text>',
            f'<rect x="{_LABEL}" y="{y + 4}" width="{length:.1f}" height="15" fill="{colour}"/>',
            f'<text x="{_LABEL + _PLOT + 8}" y="{y + 15}">{value:.3g}</text>',
        ]
    x = _LABEL + _PLOT * _AT
    parts.append(
        f'<line x1="{x}" y1="48" x2="{x}" y2="{height - 8}" stroke="#000" stroke-dasharray="4 3"/>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _limit(text: str) -> tuple[float, bool] | None:
    """Return the limit in a bar's text and whether it is a lower one."""
    found = re.search(r"\((at least|at most|under) ([\d.]+)\)", text)
    return None if found is None else (float(found.group(2)), found.group(1) == "at least")


def main(arguments: list[str]) -> int:
    """Draw `arguments[0]` into `arguments[1]`."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    figures = json.loads(Path(arguments[0]).read_text())
    Path(arguments[1]).write_text(chart(figures["bars"], figures["machine"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
