"""Eq. 6, fast: `nlts.match_covariance` against CVXPY's solvers, on buffers of real runs.

All of them solve the same problem: minimize sum_j (phi_j'S phi_j - s_j^2)^2 + rho ||S||^2 over
S >= floor. Times of CVXPY include stating the problem, as a learning phase would have to.
"""
import inspect
import time
import warnings

import numpy as np

import datasets
import nlts
from lab import fast, plots
from lab.agents import MEMORY
from lab.runs import present, progress
from lab.text import Report, goal, growth, rough, text_table

REAL = ("statlog", "mushroom", "adult", "covertype", "census", "epileptic", "jester", "financial",
        "scania")
TUPLES = (20, 50, 100, 200, 500, 1000, 2000)
FEATURES = (10, 20, 50, 100, 200)
PATIENCE = 1.5          # seconds: a solver that needs more gets no larger synthetic problem
DEFAULTS = inspect.signature(nlts.match_covariance).parameters
RIDGE, FLOOR = DEFAULTS["ridge"].default, DEFAULTS["floor"].default


def matching(o):
    """Eq. 6: match_covariance against CVXPY on buffers of real runs, and its growth in n and g."""
    sets = present(o, o.datasets or (REAL[:2] if o.quick else REAL))
    phases = (2,) if o.quick else (2, 5, 9)
    solvers = ["ours", *(["SCS"] if o.quick else sdp_solvers())]
    buffers = []
    for name in progress(sets, len(sets), "capturing buffers"):
        buffers += spread(captured(o, name, phases), 2 if o.quick else 5)
    real = [measured(buffer, solvers) for buffer in progress(buffers, len(buffers), "buffers")]
    grown = {"n": growth_in(o, [(n, 50) for n in TUPLES], solvers),
             "g": growth_in(o, [(100, g) for g in FEATURES], solvers)}
    fits = growth_fits(grown)
    text = [real_text(real, solvers)]
    text += [growth_text(axis, rows, fits, solvers) for axis, rows in grown.items()]
    text.append(goals_text(real, fits, solvers[1:]))
    data = {"ridge": RIDGE, "floor": FLOOR, "real": real, "synthetic": grown, "exponents": fits}
    figure = matching_figure(real, grown, fits, solvers)
    return Report("\n\n".join(text) + rough(o), data, {"matching": figure})


# What is measured ---------------------------------------------------------------------------------

def captured(o, name, phases):
    """The problems of Eq. 6 that the paper's method meets in these learning phases of one run."""
    L = nlts.Config.L
    problem = datasets.load(name, L * max(phases), o.seed, o.data_dir)
    N = problem.n_arms
    found = []
    phase = 0

    def recording(left, E_old, E_new, weights, lam):
        nonlocal phase
        phase += 1
        for i, old in enumerate(left):
            if phase in phases and len(E_new[i]):
                found.append({"data": name, "phase": phase, "arm": i, "n": len(E_new[i]),
                              "E_new": E_new[i], "s2": old.variance(E_old[i])})
        return nlts.likelihood_matching(left, E_old, E_new, weights, lam)

    network = nlts.MLP(problem.dim, N, seed=o.seed)
    agent = nlts.NeuralLinearTS(network, N, MEMORY * N, recording, fast.train, seed=o.seed)
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
    return found


def spread(buffers, count):
    """So many of them, from the one with the fewest tuples to the one with the most."""
    buffers = sorted(buffers, key=lambda buffer: buffer["n"])
    picked = np.linspace(0, len(buffers) - 1, count).astype(int)
    return [buffers[k] for k in np.unique(picked)]


def synthetic(rng, n, g, m=2000, dim=20):
    """A problem of Eq. 6 of any size: ReLU features that move a little, m tuples were evicted."""
    W = rng.normal(size=(g, dim)) / np.sqrt(dim)
    step = rng.normal(size=(g, dim)) / np.sqrt(dim)
    evicted = np.maximum(rng.normal(size=(m, dim)) @ W.T, 0)
    contexts = rng.normal(size=(n, dim))
    E_old = np.maximum(contexts @ W.T, 0)
    Phi_old = nlts.Config.lam * np.eye(g) + evicted.T @ evicted
    return {"n": n, "g": g, "E_new": np.maximum(contexts @ (W + 0.1 * step).T, 0),
            "s2": np.sum(E_old.T * np.linalg.solve(Phi_old, E_old.T), axis=0)}


def sdp_solvers():
    """The installed solvers of CVXPY that can solve Eq. 6."""
    import cvxpy as cp
    able = []
    for name in cp.installed_solvers():
        try:
            solve(name, synthetic(np.random.default_rng(0), 5, 5))
        except cp.error.SolverError:
            continue
        able.append(name)
    return able


def solve(solver, problem):
    """S of one problem by one solver."""
    if solver == "ours":
        return nlts.match_covariance(problem["E_new"], problem["s2"], RIDGE, FLOOR)
    return nlts.match_covariance_sdp(problem["E_new"], problem["s2"], RIDGE, FLOOR, solver=solver)


def objective(problem, S):
    """What is minimized, written out; an S slightly below the floor is lifted to it first."""
    E, s2 = problem["E_new"], problem["s2"]
    norm2 = np.sum(E ** 2, axis=1)
    scale = norm2 @ s2 / (norm2 @ norm2)
    rho = RIDGE * np.mean(norm2 ** 2)
    w, Q = np.linalg.eigh(S)
    S = (Q * w.clip(FLOOR * scale)) @ Q.T
    misfit = np.sum(E @ S * E, axis=1) - s2
    return float(misfit @ misfit + rho * np.sum(S ** 2))


def measured(problem, solvers, repeats=5):
    """Seconds, objective and misfit of each solver. Ours is timed before and after the others."""
    found = {name: problem[name] for name in ("data", "phase", "arm", "n", "g") if name in problem}
    ours = [timed("ours", problem) for _ in range(repeats)]
    for solver in solvers[1:]:
        found[solver] = timed(solver, problem)
    ours += [timed("ours", problem) for _ in range(repeats)]
    found["ours"] = ours[0] | {"seconds": float(np.median([one["seconds"] for one in ours]))}
    return found


def timed(solver, problem):
    """One solver on one problem."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        S = solve(solver, problem)
        seconds = time.perf_counter() - start
    reached = np.sum(problem["E_new"] @ S * problem["E_new"], axis=1)
    alive = problem["s2"] > 0                         # a tuple without any active unit says nothing
    misfit = np.median(np.abs(reached[alive] / problem["s2"][alive] - 1))
    return {"seconds": seconds, "objective": objective(problem, S), "misfit": float(misfit),
            "warnings": len(caught)}


def growth_in(o, sizes, solvers):
    """Synthetic problems of growing size; a solver that gets too slow is left behind."""
    rows = []
    patience = PATIENCE / 10 if o.quick else PATIENCE
    for n, g in progress(sizes, len(sizes), "synthetic buffers"):
        problem = synthetic(np.random.default_rng([o.seed, n, g]), n, g)
        rows.append(measured(problem, solvers))
        solvers = ["ours"] + [solver for solver in solvers[1:]
                              if rows[-1][solver]["seconds"] < patience]
    return rows


def growth_fits(grown):
    """Exponents of our time, with standard errors: in n up to 500 and up to 2,000, and in g."""
    fits = {}
    for key, axis, most in (("n to 500", "n", 500), ("n to 2000", "n", 2000), ("g", "g", np.inf)):
        sizes = [row[axis] for row in grown[axis]]
        fits[key] = growth(sizes, [row["ours"]["seconds"] for row in grown[axis]], most=most)
    return fits


# What is told -------------------------------------------------------------------------------------

def ratios(real, solver, what):
    """Seconds, or the objective, of a solver over ours, on every buffer."""
    return np.array([row[solver][what] / row["ours"][what] for row in real])


def real_text(real, solvers):
    """A row a solver."""
    rows = []
    for solver in solvers:
        slower = ratios(real, solver, "seconds")
        excess = ratios(real, solver, "objective") - 1
        seconds = [row[solver]["seconds"] for row in real]
        misfit = np.median([row[solver]["misfit"] for row in real])
        warned = sum(row[solver]["warnings"] for row in real)
        rows.append([solver, f"{1000 * np.median(seconds):.1f}", f"{1000 * max(seconds):.1f}",
                     f"{np.median(slower):.0f}", f"{slower.min():.0f}", f"{excess.min():.0e}",
                     f"{excess.max():.0e}", f"{100 * misfit:.1f} %", warned])
    tuples = [row["n"] for row in real]
    head = (f"{len(real)} buffers of real runs of the paper's method, g = 50, n = {min(tuples)} to "
            f"{max(tuples)}; ridge {RIDGE:g}, floor {FLOOR:g}.\n"
            "Excess: the objective over ours, minus 1. Misfit: of s², in the median.\n")
    return head + text_table(["solver", "median ms", "most", "/ ours: median", "least",
                              "excess: least", "most", "misfit", "warnings"], rows)


def growth_text(axis, rows, fits, solvers):
    """Milliseconds by size."""
    def cell(row, solver):
        return f"{1000 * row[solver]['seconds']:.3g}" if solver in row else "-"

    other = "g = 50" if axis == "n" else "n = 100"
    table = text_table([f"{axis} =", *(row[axis] for row in rows)],
                       [[solver, *(cell(row, solver) for row in rows)] for solver in solvers])
    ours = [f"{key}: {axis}^{p:.2f} ± {error:.2f}" for key, (p, error) in fits.items()
            if key.startswith(axis)]
    return (f"Synthetic buffers, {other}: milliseconds (-: left out, too slow)\n{table}\n"
            f"growth of ours, {'; '.join(ours)}")


def goals_text(real, fits, solvers):
    """What must hold."""
    fastest = np.min([ratios(real, solver, "seconds") for solver in solvers], axis=0)
    best = np.min([ratios(real, solver, "objective") for solver in solvers], axis=0)
    median, least, excess = np.median(fastest), fastest.min(), np.max(1 / best - 1)
    p, q = fits["n to 500"][0], fits["g"][0]
    rows = [
        goal("fastest CVXPY / ours, median buffer", ">= 30", f"{median:.0f}", median >= 30),
        goal("fastest CVXPY / ours, every buffer", ">= 12", f"{least:.0f}", least >= 12),
        goal("objective above CVXPY's best, every buffer", "<= 1e-6", f"{excess:.0e}",
             excess <= 1e-6),
        goal("growth with n, 20 to 500", "<= n^1.5", f"n^{p:.2f}", p <= 1.5),
        goal("growth with g, 10 to 200", "<= g^3", f"g^{q:.2f}", q <= 3),
    ]
    return text_table(["goals", "wanted", "measured", ""], rows)


# What is drawn ------------------------------------------------------------------------------------

def matching_figure(real, grown, fits, solvers):
    """Seconds by size: real buffers, and synthetic ones in n and in g."""
    figure, axes = plots.panels(f"Eq. 6, one arm: {len(real)} buffers of real runs, and synthetic")
    for i, solver in enumerate(solvers):
        seconds = [row[solver]["seconds"] for row in real]
        plots.curve(axes[0], i, [row["n"] for row in real], seconds, solver, linestyle="",
                    markerfacecolor="none")
        for panel, (axis, rows) in zip(axes[1:], grown.items(), strict=True):
            rows = [row for row in rows if solver in row]
            power = fits["n to 500" if axis == "n" else "g"][0]
            label = f"ours: ${axis}^{{{power:.1f}}}$" if solver == "ours" else solver
            plots.curve(panel, i, [row[axis] for row in rows],
                        [row[solver]["seconds"] for row in rows], label)
    axes[0].set(title="real buffers, g = 50", xlabel="tuples n of the arm", ylabel="seconds")
    axes[1].set(title="synthetic, g = 50", xlabel="tuples n of the arm", ylabel="seconds")
    axes[2].set(title="synthetic, n = 100", xlabel="features g", ylabel="seconds")
    for panel in axes:
        plots.loglog(panel)
    return figure
