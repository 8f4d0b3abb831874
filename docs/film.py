"""docs/forgetting.html: one arm's uncertainty through ten learning phases, and a bandit's regret.

`python experiments.py film --out docs` plays docs/toy.py and builds the page from a Jinja template,
docs/forgetting.in.html, and docs/film.js, which draws; it draws the GIF of README, too. The numbers
are in the page: `python -m docs.film` builds it again with those that are there.
"""
import base64
import io
import itertools
import json
import re
from dataclasses import asdict
from pathlib import Path

import jinja2
import numpy as np
from PIL import Image

from docs import toy
from docs.toy import EDGE, MOVES, PANELS
from lab.report import pyplot, text_table
from lab.statistics import mean_and_error

DOCS = Path(__file__).parent
PAGE = DOCS / "forgetting.html"
KINDS = {"moving": "moving", "one": "one distribution"}              # of contexts
MEMORY = [30, 60, 120]                                # sizes of the buffer
EVERY = 10                                            # steps between two points of the regret
LEVELS = [0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10]            # of s(b), in the maps
RIVAL = 0.0                                           # what the safe arm at the cross pays
SHOWN = ["no", "printed", "carried", "full"]          # the four maps
COLORS = {"no": "#a8487f", "printed": "#b84f00", "carried": "#0068a3", "full": "#1c1c1e"}
STORY = {  # from this phase on
    "moving": {
        1: "The arm starts at the left end; the buffer keeps only its last tuples.",
        3: "The arm moves right; without a prior, it forgets the left end.",
        6: "The arm turns back; without a prior, it knows only where it just was.",
        9: "The arm is back at the left; without a prior, the right is forgotten."},
    "one": {
        1: "The arm sees tuples from the whole arc; the buffer keeps the last.",
        3: "The arm without a prior knows its buffer, and no more.",
        6: "The arm with a prior becomes surer from phase to phase.",
        9: "The arm with the paper’s prior is now too sure, mostly away from tuples."}}
MOVE_WORDS = {
    "before": "Before: the arm has learned from new tuples, under the old features.",
    "out": "1 out: the buffer is taken out. The forgotten tuples stay, under the old features.",
    "carry": "2 carry: the network is retrained; a prior carries the forgotten to new features.",
    "back": "3 back: the buffer is put back. A good prior now looks like full memory."}


# What is measured ---------------------------------------------------------------------------------

def measure(options, sizes=toy.SIZES, runs=20):
    """All numbers of the page, and the replay of its first view, for pictures. For each kind of
    contexts and size of the buffer: what the learning phases leave behind, and the regret. For
    other rewards: the regret in the end."""
    replays = {(kind, memory): toy.replay(kind, memory, options.seed, sizes)
               for kind in KINDS for memory in MEMORY}
    streams, views, rewards = {}, {}, {}
    for (kind, memory), replay in replays.items():
        streams[kind] = encoded(np.column_stack([replay.contexts, replay.rewards]))
        regret = curves(kind, memory, toy.hills, options.seed, runs, sizes)
        views[f"{kind}-{memory}"] = written(replay, sizes) | regret
    for kind, title in KINDS.items():
        rewards[f"hills, {title}"] = last_of(views[f"{kind}-{MEMORY[0]}"])
        for pays in (toy.waves, toy.slopes):
            regret = curves(kind, MEMORY[0], pays, options.seed, runs, sizes)
            rewards[f"{pays.__name__}, {title}"] = last_of(regret)
    data = {"seed": options.seed, "runs": runs, "sizes": asdict(sizes), "every": EVERY,
            "streams": streams, "views": views, "rewards": rewards}
    return data, replays["moving", MEMORY[0]]


def written(replay, sizes):
    """A replay as plain data; and for each panel, after each move of each phase, s(b) over full
    memory's and the standard deviation nu of the noise."""
    networks = [np.column_stack([network.input.detach(), network.bias.detach()])
                for network in replay.networks]
    lower = np.tril_indices(sizes.hidden)
    priors = {name: encoded([np.append(arm.precision[lower], arm.precision @ arm.mu_hat)
                             for arm in carried]) for name, carried in replay.priors.items()}
    ratio, nu = [], []
    for phase in range(1, sizes.phases + 1):
        for move in MOVES:
            known = replay.posteriors(phase, move)[1]
            nu.append({name: rounded(np.sqrt(arm.b / arm.a)) for name, arm in known.items()})
            ratio.append({name: [x and rounded(x) for x in pair]
                          for name, pair in replay.ratios(phase, move).items()})
    return {"networks": encoded(networks), "priors": priors, "ratio": ratio, "nu": nu}


def curves(kind, memory, pays, seed, runs, sizes):
    """Regret of the bandit at every tenth step: mean over runs and its standard error."""
    regret = [toy.play(kind, memory, seed + run, pays, sizes)[:, EVERY - 1::EVERY]
              for run in range(runs)]
    return {key: dict(zip(PANELS, values.round(1).tolist(), strict=True))
            for key, values in zip(("regret", "error"), mean_and_error(regret), strict=True)}


def last_of(regret):
    """Mean and error of each panel after the last step."""
    return {name: [regret["regret"][name][-1], regret["error"][name][-1]] for name in PANELS}


def rounded(x):
    """With four digits."""
    return float(f"{x:.4g}")


def encoded(x):
    """Numbers as bytes of double precision, in base64."""
    return base64.b64encode(np.asarray(x, "<f8").tobytes()).decode()


# What is reported and drawn -----------------------------------------------------------------------

def times(ratio):
    """'× 17', '× 0.31' or, where there is nothing yet, '–'."""
    return "–" if ratio is None else f"× {float(f'{ratio:.2g}'):g}"


def report(measured):
    """s(b) over full memory's, and the regret, after the last phase of each view."""
    data, rows = measured[0], []
    for name, view in data["views"].items():
        for panel, title in PANELS.items():
            gone, away = view["ratio"][-1][panel]
            regret, error = last_of(view)[panel]
            solution = f" ({panel})" if panel in ("printed", "smallest") else ""
            rows.append([f"{name}, {title}{solution}", times(gone), times(away),
                         f"{regret} ± {error}"])
    header = ["contexts and buffer, prior", "s(b), forgotten tuples", "away from tuples", "regret"]
    return (text_table(header, rows) + f"\ns(b) over full memory’s after {data['sizes']['phases']} "
            f"learning phases, seed {data['seed']}; regret of the bandit, {data['runs']} runs ± "
            "standard error")


def frames(replay):
    """Pictures of the four maps before and after each phase."""
    figure, axes = pyplot().subplots(1, 4, figsize=(9, 3.1))
    figure.supxlabel("uncertainty of one arm, dark: certain      ○ forgotten tuple      "
                     "◆ tuple in the buffer      × 1: as full memory", fontsize=10)
    pictures = []
    for phase, move in itertools.product(range(1, len(replay.networks)), ("before", "back")):
        network, known = replay.posteriors(phase, move)
        ratios = replay.ratios(phase, move)
        for axis, name in zip(axes, SHOWN, strict=True):
            axis.clear()
            s = toy.deviation(known[name], network, toy.plane(61))
            draw_map(axis, s, replay.contexts[:phase * replay.L], replay.memory)
            axis.set_xlabel(f"forgotten tuples: {times(ratios[name][0])}", fontsize=10)
            axis.set_title(PANELS[name], fontsize=11, fontweight="bold", color=COLORS[name])
        said = "before" if move == "before" else "after"
        figure.suptitle(f"{said} learning phase {phase}", x=0.01, ha="left", fontsize=12)
        figure.canvas.draw()
        picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
        pictures.append(picture.quantize(128, dither=Image.Dither.NONE))
    pyplot().close(figure)
    return pictures


def draw_map(axis, s, contexts, kept):
    """s(b) on a grid, forgotten tuples and those in the buffer."""
    side = round(len(s) ** 0.5)
    axis.contourf(s.clip(LEVELS[0], LEVELS[-1]).reshape(side, side), LEVELS, norm="log",
                  cmap="viridis", extent=(-EDGE, EDGE, -EDGE, EDGE))
    axis.plot(*contexts[:-kept].T, "o", color="white", markersize=2.2, markeredgecolor="black",
              markeredgewidth=0.3)
    axis.plot(*contexts[-kept:].T, "D", color="black", markersize=3.6, markeredgecolor="white",
              markeredgewidth=0.6)
    axis.set(xticks=[], yticks=[], aspect="equal")


# The page -----------------------------------------------------------------------------------------

def colors():
    """Red, green and blue of each band between two levels: lightness grows with s."""
    from matplotlib import colormaps
    levels = np.log(LEVELS)
    middle = ((levels[1:] + levels[:-1]) / 2 - levels[0]) / (levels[-1] - levels[0])
    return (255 * colormaps["viridis"](middle)[:, :3]).astype(int).tolist()


def page(data, still):
    """docs/forgetting.html of these numbers; a picture stands in for the maps without a script."""
    looks = {"levels": LEVELS, "colors": colors(), "edge": EDGE, "rival": RIVAL, "panels": PANELS,
             "moves": MOVES, "story": STORY, "words": MOVE_WORDS}
    jinja = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    template = jinja.from_string((DOCS / "forgetting.in.html").read_text(encoding="utf-8"))
    return template.render(
        data=data, json=json.dumps(data | looks, ensure_ascii=False, separators=(",", ":")),
        script=(DOCS / "film.js").read_text(encoding="utf-8"), FAR=toy.FAR, KINDS=KINDS,
        MEMORY=MEMORY, SHOWN=SHOWN, still=still, **looks)


def contents(text):
    """The numbers and the picture that are in a page."""
    data = re.search('<script type="application/json" id="data">(.*)</script>', text)[1]
    return json.loads(data), re.search('src="data:image/png;base64,([^"]*)', text)[1]


def files(measured):
    """{name: content}: the page, and ten phases as a GIF."""
    data, replay = measured
    pictures, still, gif = frames(replay), io.BytesIO(), io.BytesIO()
    pictures[-1].save(still, "PNG")
    pictures[0].save(gif, "GIF", save_all=True, append_images=pictures[1:], duration=1200, loop=0)
    return {"forgetting.html": page(data, base64.b64encode(still.getvalue()).decode()),
            "film.gif": gif.getvalue()}


if __name__ == "__main__":
    PAGE.write_text(page(*contents(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
