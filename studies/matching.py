"""Eq. 6, fast: our two solvers against CVXPY's, on buffers of real runs.

All of them solve the same problem: minimize sum_j (phi_j'S phi_j - s_j^2)^2 + rho ||S||^2 over
S >= floor. Times of CVXPY include stating the problem, as a learning phase would have to.
"""
import sys
import time

import numpy as np

import datasets
import nlts
from lab import fast
from lab.recipes import MEMORY, papers_prior
from lab.report import text_table
from lab.runs import here, play, progress, read_once
from lab.statistics import growth

TUPLES = (20, 50, 100, 200, 500, 1500, 5000)
FEATURES = (10, 20, 50, 100, 200)
RIDGE, FLOOR = nlts.match_covariance.__defaults__
OURS = {"lab/fast.py": fast.match_covariance, "nlts.py": nlts.match_covariance}
FAST = "lab/fast.py"


def measure(o):
    """Eq. 6 on buffers of real runs, and its growth in n and g."""
    return read_once(o, measured_all)


def measured_all(o):
    """The measurements as plain data."""
    phases = (2,) if o.quick else (2, 5, 9)
    solvers = [*OURS, *(["SCS"] if o.quick else sdp_solvers())]
    sets, buffers = here(o, o.datasets), []
    if not sets:
        sys.exit("matching: none of these data sets is here")
    for name in progress(sets, len(sets), "capturing buffers"):
        buffers += spread(captured(o, name, phases), 2 if o.quick else 5)
    real = [measured(buffer, solvers) for buffer in progress(buffers, len(buffers), "buffers")]
    grown = {"n": seconds_of([(1, n, 50) for n in TUPLES], o.seed),
             "g": seconds_of([(1, 100, g) for g in FEATURES], o.seed)}
    return {"ridge": RIDGE, "floor": FLOOR, "solvers": solvers, "real": real, "synthetic": grown}


def captured(o, name, phases):
    """The problems of Eq. 6 that the paper's method meets in these learning phases of one run."""
    L = nlts.Config.L
    problem = datasets.load(name, L * max(phases), o.seed, o.data_dir)
    N = problem.n_arms
    found = []

    def recording(forgotten, E_old, E_new, weights, lam):
        for i, old in enumerate(forgotten):
            if agent.t // L in phases and len(E_new[i]):
                found.append({"data": name, "phase": agent.t // L, "arm": i, "n": len(E_new[i]),
                              "E_new": E_new[i], "s2": old.variance(E_old[i])})
        return papers_prior(forgotten, E_old, E_new, weights, lam)

    network = nlts.MLP(problem.dim, N, seed=o.seed)
    agent = nlts.NeuralLinearTS(network, N, MEMORY * N, recording, fast.train, seed=o.seed)
    play(problem, agent)
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
    return {"E_new": np.maximum(contexts @ (W + 0.1 * step).T, 0),
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
    if solver in OURS:
        return OURS[solver](problem["E_new"], problem["s2"], RIDGE, FLOOR)
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


def measured(problem, solvers):
    """Seconds, objective and misfit of each solver; ours are timed before and after the others."""
    ours = [{name: timed(name, problem) for name in OURS} for _ in range(5)]
    found = {solver: timed(solver, problem) for solver in solvers}
    ours += [{name: timed(name, problem) for name in OURS} for _ in range(5)]
    for name in OURS:
        found[name]["seconds"] = float(np.median([one[name]["seconds"] for one in ours]))
    return {name: problem[name] for name in ("data", "phase", "arm", "n")} | found


def timed(solver, problem):
    """One solver on one problem."""
    start = time.perf_counter()
    S = solve(solver, problem)
    seconds = time.perf_counter() - start
    alive = problem["s2"] > 0                         # a tuple without any active unit says nothing
    reached = np.sum(problem["E_new"] @ S * problem["E_new"], axis=1)
    misfit = np.median(np.abs(reached[alive] / problem["s2"][alive] - 1))
    return {"seconds": seconds, "objective": objective(problem, S), "misfit": float(misfit)}


def seconds_of(sizes, seed, repeats=9, solver=FAST):
    """Seconds of Eq. 6 for each of the sizes (N, n, g): N arms with n tuples each, g features."""
    rng = np.random.default_rng(seed)
    cases = [[synthetic(rng, n, g) for _ in range(N)] for N, n, g in sizes]
    times = []
    for _ in range(repeats):                          # all sizes take turns
        row = []
        for case in cases:
            start = time.process_time()
            for arm in case:
                solve(solver, arm)
            row.append(time.process_time() - start)
        times.append(row)
    return np.min(times, axis=0).tolist()


def ratios(real, solver, what):
    """Seconds, or the objective, of a solver over those of lab/fast.py, on every buffer."""
    return np.array([row[solver][what] / row[FAST][what] for row in real])


def tell(data):
    """A row per solver, and how time grows."""
    real, solvers = data["real"], data["solvers"]
    rows = []
    for solver in solvers:
        slower = ratios(real, solver, "seconds")
        excess = ratios(real, solver, "objective") - 1
        milliseconds = 1000 * np.median([row[solver]["seconds"] for row in real])
        misfit = 100 * np.median([row[solver]["misfit"] for row in real])
        rows.append([solver, f"{milliseconds:.1f}", f"{np.median(slower):.1f}",
                     f"{slower.min():.1f}", f"{excess.min():.0e}", f"{excess.max():.0e}",
                     f"{misfit:.1f} %"])
    tuples = [row["n"] for row in real]
    return "\n".join([
        f"{len(real)} buffers of real runs of the paper's method, g = 50, n = {min(tuples)} to "
        f"{max(tuples)}; ridge {data['ridge']:g}, floor {data['floor']:g}.",
        text_table(["solver", "median ms", "median ratio to lab/fast.py", "least ratio",
                    "least excess", "largest excess", "misfit"], rows),
        "Excess: the objective over that of lab/fast.py, minus 1. Misfit: of s², in the median.",
        "The paper: 10 to 30 s per program, by CVXPY on a laptop of 2019.", "",
        growth_text(data["synthetic"])])


def growth_text(grown):
    """How the time of lab/fast.py grows with tuples and features."""
    rows = []
    for name, sizes, most in (("n", TUPLES, 500), ("n", TUPLES, 5000), ("g", FEATURES, 200)):
        p, error = growth(sizes, grown[name], most=most)
        rows.append([f"{name} from {sizes[0]} to {most}", f"{name}^{p:.2f} ± {error:.2f}"])
    times = [f"{seconds:.2g} s for {n} tuples" for n, seconds in
             zip(TUPLES, grown["n"], strict=True) if n > 500]
    return text_table(["time of lab/fast.py", "grows as"], rows) + (
        f"\nmade-up features that move a little, g = 50: {', '.join(times)}; n = 100 if g grows")
