"""docs/forgetting.html: one arm's uncertainty through ten learning phases, and a bandit's regret.

`python experiments.py film` builds it from docs/forgetting.in.html, a Jinja template, and
docs/film.js, which only draws. docs/phases.py computes every number, with nlts.py and our prior.
"""
import ast
import base64
import inspect
import io
import json
import re
from pathlib import Path

import jinja2
import numpy as np

import nlts
import nlts_beyond
from docs import phases
from docs.phases import EDGE, EVERY, GRID, LEVELS, PANELS, PHASES, PRIORS, SIDE, decoded
from lab import fast
from lab.digest import plain, short

DOCS = Path(__file__).parent
PAGE, STILL = DOCS / "forgetting.html", DOCS.parent / "figures" / "film.png"
LOOKS = [("#b3568c", (0, (5, 1))), ("#d55e00", "--"), ("#0072b2", "-."), ("black", "-")]


# What is told -------------------------------------------------------------------------------------

def share(log_ratio):
    """A ratio to two digits: '12', '0.7' or '1/12'."""
    ratio = float(np.exp(log_ratio))
    if ratio < 0.5:
        return "1/" + share(-log_ratio)
    return f"{ratio:.1f}" if ratio < 9.95 else f"{float(f'{ratio:.2g}'):.0f}"


def of_full_memory(log_ratio):
    """'12 times full memory’s' or '1/12 of full memory’s'."""
    text = share(log_ratio)
    return f"{text} of full memory’s" if "/" in text else f"{text} times full memory’s"


def sentence(view, k):
    """What to look at in phase k (from 0): the prior that changed most on forgotten tuples, and the
    one that is furthest off away from all tuples."""
    away = view["away"][k]
    furthest = max(range(len(PRIORS)), key=lambda row: abs(away[row]))
    end = (f"away from all tuples, {PANELS[furthest]} is the furthest off, at "
           f"{of_full_memory(away[furthest])} ({verdict(away[furthest])})")
    forgotten = view["forgotten"][k]
    if not forgotten:
        return f"Nothing is forgotten yet; {end}."
    new, old = view["ratio"][k], [None] * len(PANELS)
    if k:
        old = view["ratio"][k - 1]
    row = max(range(len(PRIORS)), key=lambda row: abs(new[row] - (old[row] or 0.0)))
    return (f"Look at {PANELS[row]} on the {forgotten} forgotten tuples: its s² "
            f"{moved(old[row], new[row])} ({verdict(new[row])}); {end}.")


def moved(old, new):
    """'is ...', 'rose from ... to ...' or 'fell from ... to ...', in words of `share`."""
    if old is None or share(old) == share(new):
        return f"is {of_full_memory(new)}"
    return f"{'rose' if new > old else 'fell'} from {share(old)} to {of_full_memory(new)}"


def verdict(log_ratio):
    """What a log ratio of s^2 to full memory's means; within a factor of 1.5 it is nearly right."""
    if abs(log_ratio) < np.log(1.5):
        return "nearly right"
    return "too uncertain" if log_ratio > 0 else "too certain"


def signed(number):
    """'+1.23', '−1.23' or '0.00'."""
    return f"{number:+.2f}".replace("-", "−") if number else "0.00"


# What is drawn ------------------------------------------------------------------------------------

def colors():
    """Red, green, blue, alpha of each band between two levels: lightness grows with s."""
    from matplotlib import colormaps
    levels = np.log(LEVELS)
    middle = (levels[1:] + levels[:-1]) / 2
    shares = (middle - levels[0]) / (levels[-1] - levels[0])
    return [[int(255 * part) for part in colormaps["viridis"](share)] for share in shares]


def still(numbers, kind="moving", memory=30):
    """The last phase as a PNG: what is shown without a script, and in README."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    view = numbers["views"][f"{kind}-{memory}"]
    contexts = EDGE * (2 * decoded(view["contexts"], (-1, 2)) - 1)
    maps = decoded(view["maps"], (PHASES, len(PANELS), GRID, GRID))[-1]
    forgotten = view["forgotten"][-1]
    figure, axes = pyplot.subplots(1, 5, figsize=(12, 2.9), width_ratios=[1, 1, 1, 1, 1.25],
                                   layout="constrained")
    for axis, name, share_of_s, ratio in zip(axes, PANELS, maps, view["ratio"][-1], strict=False):
        s = LEVELS[0] * (LEVELS[-1] / LEVELS[0]) ** share_of_s
        bands = axis.contourf(SIDE, SIDE, s, LEVELS, norm="log", cmap="viridis")
        gone = axis.plot(*contexts[:forgotten].T, "o", color="white", markersize=1.6,
                         markeredgecolor="black", markeredgewidth=0.2)
        kept = axis.plot(*contexts[forgotten:].T, "D", color="black", markersize=3.2,
                         markeredgecolor="white", markeredgewidth=0.5)
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.set_xlabel(f"log (s² / full memory’s): {signed(ratio)}", fontsize=8)
        axis.set_title(name, fontsize=10, fontweight="bold")
    bar = figure.colorbar(bands, ax=axes[:4], ticks=LEVELS[::2], format="%g", pad=0.01)
    bar.ax.set_title("s(b)", fontsize=9)
    for name, curve, (color, line) in zip(PANELS, view["regret"], LOOKS, strict=True):
        steps = EVERY * np.arange(len(curve) + 1)
        axes[4].plot(steps, [0, *curve], label=name, color=color, linestyle=line)
    axes[4].set(xlabel="steps", ylabel="regret", ylim=0)
    axes[4].set_title("cumulative regret of a bandit", fontsize=10, fontweight="bold")
    axes[4].spines[["top", "right"]].set_visible(False)
    axes[4].legend(frameon=False, fontsize=8)
    figure.legend([*gone, *kept], [f"{forgotten} forgotten tuples", f"{memory} in the buffer"],
                  loc="outside lower center", ncols=2, frameon=False, markerscale=2)
    file = io.BytesIO()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
    return file.getvalue()


# The page -----------------------------------------------------------------------------------------

def program():
    """A digest of what computes the page."""
    return digest(inspect.getsource(part) for part in (nlts, nlts_beyond, fast.train, phases))


def digest(sources):
    """A name of syntax trees, without comments and docstrings."""
    return short([plain(ast.parse(source)) for source in sources])


def stored(text):
    """The numbers of a page, and the digest of the program that computed them."""
    numbers = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1]
    return json.loads(numbers), re.search(r'<meta name="program" content="(\w+)">', text)[1]


def render(numbers, png):
    """The page of these numbers and of the picture of their last phase."""
    for view in numbers["views"].values():
        view["sentence"] = [sentence(view, k) for k in range(PHASES)]
    jinja = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    template = jinja.from_string((DOCS / "forgetting.in.html").read_text(encoding="utf-8"))
    return template.render(
        numbers=numbers, data=json.dumps(numbers, ensure_ascii=False, separators=(",", ":")),
        script=(DOCS / "film.js").read_text(encoding="utf-8"), phases=phases, program=program(),
        still=base64.b64encode(png).decode())


def film(page=PAGE, png=STILL, seed=0, fresh=False):
    """Write the page and the still picture, and say so. Numbers that this program computed before
    with this seed are taken from the page, unless they are to be computed anew (some minutes)."""
    numbers, computed_by = None, None
    if Path(page).exists():
        numbers, computed_by = stored(Path(page).read_text(encoding="utf-8"))
    if fresh or computed_by != program() or numbers["seed"] != seed:
        numbers = phases.measure(seed) | {"colors": colors()}
    picture = still(numbers)
    text = render(numbers, picture)
    Path(png).write_bytes(picture)
    Path(page).write_text(text, encoding="utf-8")
    print(f"{page}: {len(text.encode()) / 1000:.0f} kB")


def command(o):
    """`python experiments.py film`: into a folder of one's own, or with --out figures for all."""
    o.out.mkdir(parents=True, exist_ok=True)
    shared = o.out.resolve() == STILL.parent
    film(PAGE if shared else o.out / PAGE.name, o.out / STILL.name, o.seed, o.fresh)
