"""Contexts that drift: rows in the order of their first principal component.

The buffer is then not like what was forgotten, and the network trains on something else.
"""
from lab import report
from lab.recipes import RECIPES
from lab.runs import execute, make_task
from lab.statistics import grouped

SETS = "statlog", "covertype", "adult"


def measure(o):
    """Rewards on drifting data sets."""
    return execute(o, [make_task(o, d, name, drift=True) for d in o.datasets
                       for name in o.algorithms])


def tell(lines):
    """Rewards, two kinds of forgetting, and what each algorithm gains over no prior."""
    rewards = grouped(lines, "dataset", "algorithm")
    parts = [report.rewards_text(lines, rewards, title="reward under drift", printed=False)]
    if report.whole(rewards):
        parts.append(report.kinds_text(report.whole(rewards)))
    if all("no-prior" in own and len(own) > 1 for own in rewards.values()):
        parts.append(report.minus_text("gained under drift", rewards, "no-prior"))
    return "\n\n".join([*parts, report.explored_text(lines)])


def draw(lines):
    """Two kinds of forgetting."""
    rewards = report.whole(grouped(lines, "dataset", "algorithm"))
    if not rewards or not {"both-priors", "carried"} <= set(next(iter(rewards.values()))):
        return {}
    labels = {name: recipe.label for name, recipe in RECIPES.items()}
    return {"drift": report.draw_kinds(rewards, labels, "Two kinds of forgetting under drift")}
