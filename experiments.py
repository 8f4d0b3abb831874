"""Every figure and table of the paper is one command; `python experiments.py` lists them.

Each command prints what a reader wants to know, draws its picture into figures/ and saves the numbers it was drawn
from beside it. Runs are independent tasks: a run's rows, their order, the network's first weights and the sampling
depend on (experiment, data set, run) only, so all algorithms see the same problem, and no result depends on --jobs.
"""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")                            # before numpy: one thread a process

import argparse  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import multiprocessing  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from concurrent.futures import ProcessPoolExecutor, as_completed  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import asdict  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402

import datasets  # noqa: E402
import nlts  # noqa: E402

HERE = Path(__file__).resolve().parent
MEMORY = 100                                                             # buffered tuples per arm: Sec. 4
GROUP = 5                                                                # runs that train together in one task

# Name, label and arguments of NeuralLinearTS (None: LinearTS); the paper's five in its order, then our reference.
ALGORITHMS = {
    "linear": ("Linear", None),
    "neural-linear": ("Neural-linear, full memory", {"memory": None}),
    "both-priors": ("Limited memory, both priors", {"priors": "both"}),
    "mu-prior": ("Limited memory, μ prior", {"priors": "mean"}),
    "no-prior": ("Limited memory, no prior", {"priors": "none"}),
    "perfect-prior": ("Limited memory, perfect prior (ours)", {"priors": "perfect"}),
}
LIMITED = ("both-priors", "mu-prior", "no-prior")
PAPER_TABLE = {  # mean and standard deviation of the reward, in the order of ALGORITHMS
    "mushroom": ((11022, 774), (10880, 853), (10923, 839), (9442, 1351), (7613, 1670)),
    "financial": ((4588, 587), (4389, 584), (4597, 597), (4311, 598), (4225, 594)),
    "jester": ((14080, 2240), (12819, 2135), (9624, 2186), (10996, 2013), (11114, 2050)),
    "adult": ((4066.1, 11.03), (4010.0, 22.19), (3943.0, 54.29), (3839.5, 17.63), (3608.2, 34.94)),
    "covertype": ((3054, 557), (2898, 545), (2828, 593), (2347, 615), (2334, 603)),
    "census": ((1791.5, 39.47), (2135.5, 51.47), (2023.16, 37.3), (1873, 757), (1943.83, 84.2)),
    "statlog": ((4483, 353), (4781, 274), (4825, 305), (4681, 285), (4623, 276)),
    "epileptic": ((1202.9, 34.68), (1706.9, 41.26), (1716.8, 60.44), (1572.9, 48.66), (1411.0, 33.43)),
    "smartphones": ((3085.8, 24.64), (3643.5, 64.89), (2660.4, 84.72), (3064.5, 55.06), (2851.6, 58.77)),
    "scania": ((4691.8, 7.23), (4784.7, 6.05), (4742.0, 33.0), (4698.0, 13.06), (4470.4, 37.9)),
}
PAPER_WHEEL = {0.5: ((737.44, 3.04), (899.72, 12.79)), 0.3: ((735.37, 2.58), (781.09, 11.34)),
               0.1: ((735.51, 2.59), (751.75, 3.6))}
PAPER_AMAZON = {"ε-greedy": (2963.9, 68.5), "neural-linear": (3155.6, 34.9), "both-priors": (3143.9, 33.5)}
STYLES = [("#000000", "-", "o"), ("#0072B2", "--", "s"), ("#D55E00", "-.", "^"), ("#009E73", ":", "D"),
          ("#CC79A7", (0, (5, 1)), "v"), ("#E69F00", (0, (1, 1)), "x")]  # Okabe-Ito, and told apart without color


# Playing ------------------------------------------------------------------------------------------------------------

def run_seed(experiment, dataset, run, seed=0):
    """The seed of a run: the same for every algorithm."""
    return int.from_bytes(hashlib.sha256(f"{experiment}/{dataset}/{run}/{seed}".encode()).digest()[:4], "big")


def make_problem(task, seed):
    """The problem of one run."""
    name, steps = task["dataset"], task["steps"]
    if name.startswith("wheel "):
        return datasets.wheel(float(name.split()[1]), steps, seed)
    if task.get("csv"):
        return datasets.from_csv(task["csv"], steps=steps, seed=seed)
    return datasets.load(name, steps, seed, task["data_dir"])


def make_agent(task, problem, seed):
    """The agent of one run."""
    name, n_arms, config = task["algorithm"], problem.n_arms, task["config"]
    if name == "linear":
        return nlts.LinearTS(problem.dim + 1, n_arms, seed=seed)
    if problem.vocabulary is None:
        network = nlts.MLP(problem.dim, n_arms, seed=seed)
    else:
        network = nlts.TextCNN(problem.vocabulary, n_arms, seed=seed)
    if name.startswith("ε="):
        return nlts.EpsilonGreedy(network, n_arms, float(name[2:]), seed=seed, **config)
    arguments = {"memory": task["memory"] * n_arms} | ALGORITHMS[name][1]
    return nlts.NeuralLinearTS(network, n_arms, seed=seed, **arguments, **config)


def play(problems, agents):
    """Let each agent play its problem, in lockstep so that networks can be trained together.

    Returns the rewards (runs, steps) and the seconds by part; train and priors are the learning phase.
    """
    start, seconds = time.perf_counter(), {"train": 0.0, "priors": 0.0}
    together = all(isinstance(agent, nlts.NeuralLinearTS) and isinstance(agent.network, nlts.MLP) for agent in agents)
    contexts = [problem.contexts for problem in problems]
    for k, agent in enumerate(agents):
        if together:
            agent.learn = lambda: None                                   # its three steps are taken below
        elif isinstance(agent, nlts.LinearTS):
            contexts[k] = np.column_stack([contexts[k], np.ones(len(contexts[k]))])    # with an intercept
    rewards = np.empty((len(agents), len(problems[0])))
    for t in range(rewards.shape[1]):
        for k, agent in enumerate(agents):
            arm = agent.act(contexts[k][t])
            rewards[k, t] = problems[k].rewards[t, arm]
            agent.update(contexts[k][t], arm, rewards[k, t])
        if together and (t + 1) % agents[0].config.L == 0:
            E_old = [agent.buffer_features() for agent in agents]
            began = time.perf_counter()
            train_together(agents)
            trained = time.perf_counter()
            for agent, old in zip(agents, E_old):
                agent.compute_priors(old)
            seconds["train"] += trained - began
            seconds["priors"] += time.perf_counter() - trained
    seconds["total"] = time.perf_counter() - start
    return rewards, seconds


def train_together(agents):
    """nlts.train for the MLPs of many agents at once: explicit gradients, the same mini-batches, the same Adam.

    Networks are stacked along the first axis, and numpy multiplies stacked matrices one by one: what a network learns
    does not depend on its company.
    """
    c, networks = agents[0].config, [agent.network for agent in agents]
    (n_arms, g), d, R, B = networks[0].weights.shape, networks[0].dim, len(agents), c.batch
    parameters = [[p.detach().numpy() for p in (net.input, net.bias, net.weights)] for net in networks]
    theta = np.array([np.concatenate([p.ravel() for p in net]) for net in parameters])     # (R, parameters)
    gradient, m, v = np.zeros_like(theta), np.zeros_like(theta), np.zeros_like(theta)

    def views(x):
        return x[:, :g * d].reshape(R, g, d), x[:, g * d:g * d + g], x[:, g * d + g:].reshape(R, n_arms, g)

    (W, bias, V), (dW, dbias, dV) = views(theta), views(gradient)
    X, D = np.empty((R, B, d)), np.zeros((R, B, n_arms))
    every, each = np.arange(R)[:, None], np.arange(B)[None, :]
    for step in range(1, c.P + 1):
        batches = [agent.buffer.minibatch(B, agent.rng) for agent in agents]
        for k, batch in enumerate(batches):
            X[k] = batch[0]
        arms, rewards = np.array([batch[1] for batch in batches]), np.array([batch[2] for batch in batches])
        phi = X @ W.transpose(0, 2, 1)                                   # (R, B, g)
        phi += bias[:, None]
        np.maximum(phi, 0, out=phi)
        D[:] = 0
        output = (phi @ V.transpose(0, 2, 1))[every, each, arms]
        D[every, each, arms] = 2 / B * (output - rewards)                # Eq. (loss): only the played arm
        np.matmul(D.transpose(0, 2, 1), phi, out=dV)
        dphi = D @ V
        dphi *= phi > 0
        np.matmul(dphi.transpose(0, 2, 1), X, out=dW)
        dphi.sum(1, out=dbias)
        m += 0.1 * (gradient - m)                                        # Adam
        v += 0.001 * (gradient * gradient - v)
        theta -= c.lr / (1 - 0.9 ** step) * m / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-8)
    for k, net in enumerate(parameters):
        for mine, new in zip(net, views(theta)):
            mine[...] = new[k]


def run_task(task):
    """Some runs of one algorithm on one data set: a list of result lines."""
    torch.set_num_threads(1)
    run_seeds = [run_seed(task["experiment"], task["dataset"], run, task["seed"]) for run in task["runs"]]
    problems = [make_problem(task, seed) for seed in run_seeds]
    agents = [make_agent(task, problem, seed) for problem, seed in zip(problems, run_seeds)]
    rewards, seconds = play(problems, agents)
    lines = []
    for run, seed, problem, earned in zip(task["runs"], run_seeds, problems, rewards):
        line = {"dataset": task["dataset"], "algorithm": task["algorithm"], "run": run, "seed": seed,
                "steps": len(earned), "dim": problem.dim, "arms": problem.n_arms, "reward": round(earned.sum(), 6),
                "optimal": round(float(problem.optimal.sum()), 6),
                "seconds": {part: round(s / len(agents), 3) for part, s in seconds.items()}, "config": task["hash"]}
        if task["trace"]:
            line["regret"] = [int(x) if x == int(x) else round(x, 6) for x in (problem.optimal - earned).tolist()]
        lines.append(line)
    return lines


def run_anywhere(folder, task):
    """run_task in a process that has not imported this file, as a Dask worker: needs nothing but its arguments."""
    import sys
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import experiments
    return experiments.run_task(task)


# Tasks and results files --------------------------------------------------------------------------------------------

def config_hash(task):
    """Names everything that a result depends on, but for the run number."""
    key = {name: value for name, value in task.items() if name not in ("runs", "data_dir", "trace", "hash")}
    if task.get("csv"):
        key["csv"] = hashlib.sha256(Path(task["csv"]).read_bytes()).hexdigest()
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]


def make_task(o, experiment, dataset, algorithm, steps, trace=False, csv=None, memory=MEMORY, **hyper):
    """What one algorithm is to do on one data set; `runs` is filled in by `execute`."""
    config = {} if algorithm == "linear" else asdict(nlts.Config(**hyper))
    task = {"experiment": experiment, "dataset": dataset, "algorithm": algorithm, "steps": steps, "seed": o.seed,
            "memory": memory, "config": config, "csv": csv and str(csv), "data_dir": o.data_dir and str(o.data_dir),
            "trace": trace}
    return task | {"hash": config_hash(task)}


def read_lines(path):
    """The result lines of a file; a last line that was not finished is cut off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[:data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


@contextmanager
def executor(o):
    """Where runs are played: processes on this machine, or with --dask the workers of a Dask cluster."""
    if not o.dask:
        with ProcessPoolExecutor(o.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield pool
        return
    try:
        from distributed import Client
    except ImportError:
        sys.exit("--dask needs the package distributed: pip install distributed")
    with Client(o.dask, timeout="20s") as client:
        yield client.get_executor()                                      # workers see this folder on a shared disk


def execute(o, name, tasks, runs):
    """Play what is not yet in out/name.jsonl, appending each run as it finishes. Returns the lines of these tasks."""
    path = o.out / f"{name}.jsonl"
    o.out.mkdir(parents=True, exist_ok=True)
    wanted = {task["hash"]: task for task in tasks}
    lines = [line for line in read_lines(path) if line["config"] in wanted and line["run"] < runs]
    done = {(line["config"], line["run"]) for line in lines}
    todo = []
    for task in tasks:
        missing = [run for run in range(runs) if (task["hash"], run) not in done]
        todo += [task | {"runs": missing[i:i + GROUP]} for i in range(0, len(missing), GROUP)]
    if done:
        print(f"{len(done)} runs are already in {path}", file=sys.stderr)
    total, bar = len(done) + sum(len(task["runs"]) for task in todo), Progress()
    if todo:
        with executor(o) as pool, open(path, "a") as file:
            futures = [pool.submit(run_anywhere, str(HERE), task) for task in todo]
            bar.show(len(lines) - len(done), total - len(done))
            try:
                for future in as_completed(futures):
                    lines += future.result()
                    file.writelines(json.dumps(line) + "\n" for line in future.result())
                    file.flush()
                    os.fsync(file.fileno())
                    bar.show(len(lines) - len(done), total - len(done))
            except KeyboardInterrupt:
                for future in futures:
                    future.cancel()
                sys.exit(f"\nstopped; what is finished is in {path}, the same command goes on from there")
    return sorted(lines, key=lambda line: (line["dataset"], line["algorithm"], line["run"]))


class Progress:
    """A progress line with the time left, on standard error."""

    def __init__(self, what="runs"):
        self.what, self.start, self.shown = what, time.monotonic(), 0.0

    def show(self, done, total):
        """Say that `done` of `total` are finished."""
        now = time.monotonic()
        tty = sys.stderr.isatty()
        if not tty and now - self.shown < 30 and done < total:           # do not fill a log file
            return
        self.shown = now
        left = f", {time.strftime('%M:%S', time.gmtime((now - self.start) * (total - done) / done))} left" if done else ""
        print(f"{done} of {total} {self.what}{left}", end="\r" if tty and done < total else "\n", file=sys.stderr,
              flush=True)


# Printing, drawing, saving ------------------------------------------------------------------------------------------

def save(o, name, data, figure=None):
    """Write the numbers to out/name.json and the picture to out/name.png, and say so."""
    o.out.mkdir(parents=True, exist_ok=True)
    path = o.out / f"{name}.json"
    part = path.with_suffix(".json.part")
    part.write_text(json.dumps({"config": {"command": o.command, "seed": o.seed, "quick": o.quick}, **data}) + "\n")
    os.replace(part, path)
    print(f"\nnumbers: {path}")
    if figure is not None:
        figure.savefig(path.with_suffix(".png"), dpi=150)
        print(f"figure:  {path.with_suffix('.png')}")


def text_table(header, rows):
    """An aligned table as text."""
    rows = [[str(x) for x in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(x.ljust(w) if i == 0 else x.rjust(w) for i, (x, w) in enumerate(zip(row, widths)))
                     for row in rows)


def print_table(header, rows):
    """Print an aligned table."""
    print("\n" + text_table(header, rows))


def mean_sd(values, digits=0):
    """'mean ± standard deviation' of the runs."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:.{digits}f}"


def paired(x, y):
    """Mean and standard error of x - y, run by run."""
    difference = np.asarray(x, float) - np.asarray(y, float)
    return difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.inf


def pyplot():
    """matplotlib without a screen; imported only where something is drawn."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
                         "figure.constrained_layout.use": True})
    return plt


def rough(o):
    """The line that --quick adds."""
    if o.quick:
        print("\n--quick: few runs and steps, so these figures are rough and not the ones to quote.")


# Sec. 4.1: catastrophic forgetting ----------------------------------------------------------------------------------

def forgetting(o):
    """Fig. "Catastrophic forgetting": regret on Statlog around each retraining, five algorithms."""
    steps, runs, L = o.steps or (1200 if o.quick else 4000), o.runs or (4 if o.quick else 10), nlts.Config.L
    names = [name for name in ALGORITHMS if name in o.algorithms]
    tasks = [make_task(o, "forgetting", "statlog", name, steps, trace=True) for name in names]
    lines = execute(o, "forgetting", tasks, runs)
    regret = {name: np.array([line["regret"] for line in lines if line["algorithm"] == name]) for name in names}
    reward = {name: [line["reward"] for line in lines if line["algorithm"] == name] for name in names}
    phases = np.arange(L, steps - 49, L)                                 # retrained after these steps
    after = {name: np.mean([r[:, p:p + 50].mean(1) for p in phases], 0) for name, r in regret.items()}
    before = {name: np.mean([r[:, p - 50:p].mean(1) for p in phases], 0) for name, r in regret.items()}
    print_table(["Statlog", "reward", "regret", "regret/step before", "after retraining", "ratio"],
                [[ALGORITHMS[n][0], mean_sd(reward[n]), mean_sd(regret[n].sum(1)), f"{before[n].mean():.4f}",
                  f"{after[n].mean():.4f}", f"{after[n].mean() / max(before[n].mean(), 1e-9):.2f}"] for n in names])
    print(f"mean ± standard deviation of {runs} runs of {steps} steps; before and after: the 50 steps around each of "
          f"the {len(phases)} retrainings")
    claims(regret, after)
    save(o, "forgetting", {"config": {"dataset": "statlog", "steps": steps, "runs": runs, "seed": o.seed, "L": L,
                                      "memory_per_arm": MEMORY, **asdict(nlts.Config())},
                           "algorithms": {n: {"regret": [list(map(float, r)) if (r % 1).any() else list(map(int, r))
                                                         for r in regret[n]], "reward": reward[n]} for n in names}},
         forgetting_figure(regret, steps, runs, L))
    rough(o)


def claims(regret, after):
    """The paper's claims about the figure, each with the paired difference of the runs."""
    total = {name: r.sum(1) for name, r in regret.items()}
    print("\nThe paper says, and this run finds (paired difference ± standard error):")
    for claim, worse, better, values, slack in (
            ("neural-linear beats linear: the data are nonlinear", "linear", "neural-linear", total, 0.0),
            ("both priors almost as good as full memory (within 10 % of its regret)", "neural-linear", "both-priors",
             total, 0.1),
            ("both priors better than the μ prior", "mu-prior", "both-priors", total, 0.0),
            ("both priors better than no prior", "no-prior", "both-priors", total, 0.0),
            ("the covariance prior reduces the peaks after retraining (against no prior)", "no-prior", "both-priors",
             after, 0.0)):
        if worse in values and better in values:
            difference, error = paired(values[worse], values[better])
            bound = -slack * values[worse].mean()
            verdict = "supported" if difference - error > bound else "not supported" if difference < bound else "unclear"
            print(f"- {claim}: {verdict} ({difference:+.3g} ± {error:.2g})")


def forgetting_figure(regret, steps, runs, L, window=25):
    """Stacked panels with a shared axis: mean regret over runs in windows of 25 steps, with its standard error."""
    plt = pyplot()
    figure, axes = plt.subplots(len(regret), 1, figsize=(7.5, 1.35 * len(regret) + 0.5), sharex=True, sharey=True,
                                squeeze=False)
    x = np.arange(window, steps + 1, window) - window / 2
    for panel, (name, r) in zip(axes[:, 0], regret.items()):
        blocks = r[:, :len(x) * window].reshape(len(r), -1, window).mean(2)
        mean, error = blocks.mean(0), blocks.std(0, ddof=1) / np.sqrt(len(r)) if len(r) > 1 else 0 * blocks[0]
        panel.fill_between(x, mean - error, mean + error, color="#0072B2", alpha=0.3, linewidth=0)
        panel.plot(x, mean, color="black" if name != "perfect-prior" else "#666666", linewidth=1)
        for p in range(L, steps, L):
            panel.axvline(p, color="0.8", linewidth=0.7, zorder=0)
        panel.set_title(ALGORITHMS[name][0], loc="right", y=0.78, fontsize=9)
        panel.set_xticks(range(0, steps + 1, L))
        panel.set_xlim(0, steps)
        panel.set_ylim(0, 0.3)
    axes[len(axes) // 2, 0].set_ylabel("regret per step")
    axes[-1, 0].set_xlabel("step; the network is retrained at each tick")
    figure.suptitle(f"Statlog, mean of {runs} runs of {steps} steps in windows of {window}; band: ± 1 standard error;\n"
                    "the first steps lie above the axis",
                    fontsize=9)
    return figure


# Sec. 4.2: real world data ------------------------------------------------------------------------------------------

def table(o):
    """The table of ten data sets and five algorithms."""
    runs = o.runs or (2 if o.quick else 50)
    names, tasks = [name for name in ALGORITHMS if name in o.algorithms], []
    chosen = [str(o.csv)] if o.csv else o.datasets or (["statlog"] if o.quick else list(PAPER_TABLE))
    for dataset in chosen:
        try:
            steps = available_steps(o, dataset)
        except datasets.MissingData as error:
            print(f"skipped: {error}", file=sys.stderr)
            continue
        tasks += [make_task(o, "table", dataset, name, steps, csv=o.csv) for name in names]
    if not tasks:
        sys.exit("none of the data sets is on this machine: `python datasets.py` says how to get them")
    lines = execute(o, "table", tasks, runs)
    text = table_text(lines, names)
    print("\n" + text)
    (o.out / "table.md").write_text(text + "\n")
    parts = {part: sum(line["seconds"].get(part, 0) for line in lines) for part in ("total", "train", "priors")}
    share = max((np.mean([line["seconds"]["priors"] / line["seconds"]["total"] for line in lines
                          if line["dataset"] == d and line["algorithm"] == "both-priors"] or [0]), d)
                for d in {line["dataset"] for line in lines})
    print(f"\nprocessor time {parts['total'] / 60:.1f} minutes, of which training {parts['train'] / parts['total']:.0%} and "
          f"priors {parts['priors'] / parts['total']:.0%}; with both priors their share is at most {share[0]:.0%} ({share[1]})")
    print(f"numbers: {o.out / 'table.jsonl'}\ntable:   {o.out / 'table.md'}")
    rough(o)


def available_steps(o, dataset):
    """5000, or as many as there are where rows are not drawn with replacement."""
    steps = o.steps or (800 if o.quick else 5000)
    if o.csv:
        return min(steps, len(datasets.from_csv(o.csv)))
    rows = len(datasets.table(datasets.SOURCES[dataset], o.data_dir).y)
    return steps if dataset == "mushroom" else min(steps, rows)


def table_text(lines, names):
    """The table in Markdown: ours, and below it the paper's; the best limited-memory entry in bold."""
    text = ["| data set | d | arms | steps | runs | " + " | ".join(ALGORITHMS[name][0] for name in names) + " |",
            "|---" * (5 + len(names)) + "|"]
    present = list(dict.fromkeys(line["dataset"] for line in lines))
    for dataset in sorted(present, key=lambda d: list(PAPER_TABLE).index(d) if d in PAPER_TABLE else 99):
        own = [line for line in lines if line["dataset"] == dataset]
        rewards = {name: [line["reward"] for line in own if line["algorithm"] == name] for name in names}
        best = max((name for name in LIMITED if rewards.get(name)), key=lambda n: np.mean(rewards[n]), default=None)
        cells = [("**{}**" if name == best else "{}").format(mean_sd(rewards[name])) if rewards[name] else "" for name in names]
        text.append(f"| {Path(dataset).stem.capitalize()} | {own[0]['dim']} | {own[0]['arms']} | {own[0]['steps']} | "
                    f"{len({line['run'] for line in own})} | " + " | ".join(cells) + " |")
        if dataset in PAPER_TABLE:
            paper = dict(zip(ALGORITHMS, PAPER_TABLE[dataset]))
            cells = ["*{:.0f} ± {:.0f}*".format(*paper[name]) if name in paper else "" for name in names]
            text.append("| *the paper* | | | *5000* | *50* | " + " | ".join(cells) + " |")
    return "\n".join(text)


# Sec. 4.3: text -----------------------------------------------------------------------------------------------------

def amazon(o):
    """Text CNN on Amazon reviews: epsilon-greedy with ten values of epsilon, full memory, limited memory."""
    try:
        rows = len(datasets.table(datasets.SOURCES["amazon"], o.data_dir).y)
    except datasets.MissingData as error:
        sys.exit(f"skipped: {error}")
    steps, runs = min(o.steps or (450 if o.quick else 5000), rows), o.runs or (1 if o.quick else 10)
    greedy = [f"ε={k / 10:.1f}" for k in range(1, 11)]
    names = [*(greedy[:1] if o.quick else greedy), "neural-linear", "both-priors"]
    hyper = {"P": 5} if o.quick else {}
    lines = execute(o, "amazon", [make_task(o, "amazon", "amazon", name, steps, **hyper) for name in names], runs)
    reward = {name: [line["reward"] for line in lines if line["algorithm"] == name] for name in names}
    best = max(greedy, key=lambda name: np.mean(reward.get(name, -np.inf)))
    rows = [[ALGORITHMS.get(name, (f"ε-greedy, {name}",))[0] + (" (best ε)" if name == best else ""), mean_sd(reward[name], 1),
             "{} ± {}".format(*PAPER_AMAZON.get("ε-greedy" if name == "ε=0.1" else name, ("", ""))).strip(" ±")]
            for name in names]
    print_table(["Amazon reviews", "reward", "the paper's (5000 steps)"], rows)
    print(f"mean ± standard deviation of {runs} runs of {steps} steps; there are {lines[0]['steps']} reviews drawn here, "
          f"and 413,840 in the complete file that the paper draws from")
    save(o, "amazon", {"steps": steps, "runs": runs, "reward": reward})
    rough(o)


# Appendix B: the wheel ----------------------------------------------------------------------------------------------

def wheel(o):
    """The wheel bandit: reward for three sizes of the inner circle, and a picture of what was learned."""
    steps, runs, hyper = o.steps or (1000 if o.quick else 4000), o.runs or (2 if o.quick else 50), {"L": 200, "P": 400}
    names = [name for name in ("linear", "neural-linear", "both-priors") if name in o.algorithms]
    tasks = [make_task(o, "wheel", f"wheel {delta}", name, steps, **hyper) for delta in PAPER_WHEEL for name in names]
    lines = execute(o, "wheel", tasks, runs)
    rows, reward = [], {}
    for delta, paper in PAPER_WHEEL.items():
        own = [line for line in lines if line["dataset"] == f"wheel {delta}"]
        reward[delta] = {name: [line["reward"] for line in own if line["algorithm"] == name] for name in names}
        theirs = dict(zip(("linear", "both-priors"), paper))
        rows.append([f"δ = {delta}", *(mean_sd(reward[delta][name], 1) for name in names),
                     *("{} ± {}".format(*theirs[name]) for name in names if name in theirs),
                     f"{np.mean([line['optimal'] for line in own]):.0f}", f"{0.2 * steps:.0f}"])
    print_table(["wheel", *(ALGORITHMS[name][0] for name in names),
                 *(f"paper: {ALGORITHMS[name][0]}" for name in names if name != "neural-linear"), "optimum", "safe arm"], rows)
    print(f"mean ± standard deviation of {runs} runs of {steps} steps; safe arm: always playing arm 5")
    save(o, "wheel", {"steps": steps, "runs": runs, "reward": reward}, wheel_figure(o, steps, hyper))
    rough(o)


def wheel_figure(o, steps, hyper, delta=0.5):
    """Fig. of Appendix B: reward samples, linear and neural-linear predictions; a column an arm."""
    plt, agents = pyplot(), {}
    for name in ("linear", "both-priors"):
        task = make_task(o, "wheel", f"wheel {delta}", name, steps, **hyper)
        seed = run_seed("wheel", task["dataset"], 0, o.seed)
        problem = make_problem(task, seed)
        agents[name] = make_agent(task, problem, seed)
        play([problem], [agents[name]])
    figure, axes = plt.subplots(3, 5, figsize=(8, 5.2), sharex=True, sharey=True, subplot_kw={"aspect": "equal"})
    x, shown = problem.contexts, slice(0, 1500)
    phi = nlts.last_layer_activations(agents["both-priors"].network, x)
    rows = {"reward samples": problem.rewards,
            "linear": np.column_stack([np.column_stack([x, np.ones(len(x))]) @ arm.mu_hat for arm in agents["linear"].arms]),
            "neural-linear,\nlimited memory": np.column_stack([phi @ arm.mu_hat for arm in agents["both-priors"].arms])}
    for row, (label, values) in zip(axes, rows.items()):
        row[0].set_ylabel(label)
        for i, panel in enumerate(row):
            dots = panel.scatter(*x[shown].T, c=values[shown, i], s=2, cmap="cividis", vmin=0, vmax=0.5, rasterized=True)
            panel.add_patch(plt.Circle((0, 0), delta, fill=False, color="white", linewidth=0.8))
            panel.set_xticks([-1, 0, 1])
            panel.set_yticks([-1, 0, 1])
    for i, panel in enumerate(axes[0]):
        panel.set_title(f"arm {i + 1}")
    figure.colorbar(dots, ax=axes, label="reward", shrink=0.8)
    figure.suptitle(f"Wheel, δ = {delta}: one run of {steps} steps; the circle is ‖x‖ = δ", fontsize=9)
    return figure


# Speed --------------------------------------------------------------------------------------------------------------

class Textbook:
    """Neural-linear Thompson sampling the textbook way, with the calls that the Deep Bayesian Bandits code makes."""

    def __init__(self, network, n_arms, seed, g=50):
        from scipy.stats import invgamma                                 # slow to import
        self.network, self.rng, self.inverse_gamma = network, np.random.RandomState(seed), invgamma
        self.precision = [0.25 * np.eye(g) for _ in range(n_arms)]
        self.covariance = [np.linalg.inv(B) for B in self.precision]
        self.f, self.mu = np.zeros((n_arms, g)), np.zeros((n_arms, g))
        self.a, self.b, self.R2 = np.full(n_arms, 6.0), np.full(n_arms, 6.0), np.zeros(n_arms)

    def act(self, context):
        """The arm to play."""
        phi = nlts.last_layer_activations(self.network, context[None])[0]
        nu2 = [b * self.inverse_gamma.rvs(a, random_state=self.rng) for a, b in zip(self.a, self.b)]
        return int(np.argmax([self.rng.multivariate_normal(self.mu[i], nu2[i] * self.covariance[i]) @ phi
                              for i in range(len(self.mu))]))

    def update(self, context, arm, reward):
        """Eq. (BLR) as printed."""
        phi = nlts.last_layer_activations(self.network, context[None])[0]
        self.precision[arm] += np.outer(phi, phi)
        self.covariance[arm] = np.linalg.inv(self.precision[arm])
        self.f[arm] += phi * reward
        self.mu[arm] = self.covariance[arm] @ self.f[arm]
        self.a[arm], self.R2[arm] = self.a[arm] + 0.5, self.R2[arm] + reward ** 2
        self.b[arm] = 6.0 + (self.R2[arm] - self.mu[arm] @ self.precision[arm] @ self.mu[arm]) / 2


def clock(function, *arguments):
    """Seconds that a call takes."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def speed(o):
    """Decisions against the textbook way, training against the plain loop, both priors against none; as ratios."""
    torch.set_num_threads(1)
    problem, blocks = datasets.load("statlog", 2000, o.seed), 3 if o.quick else 10

    def decide(agent, first, steps=50):
        for t in range(first, first + steps):
            agent.update(problem.contexts[t], agent.act(problem.contexts[t]), 1.0)

    seven, fourteen, late = (nlts.NeuralLinearTS(nlts.MLP(9, n), n, L=10 ** 9, initial_pulls=0) for n in (7, 14, 7))
    decide(late, 0, 1500)
    textbook, seconds = Textbook(nlts.MLP(9, 7), 7, o.seed), {"ours": [], "textbook": [], "14 arms": [], "late": []}
    for k in range(blocks):
        seconds["ours"].append(clock(decide, seven, 50 * k))
        seconds["textbook"].append(clock(decide, textbook, 50 * k))
        seconds["14 arms"].append(clock(decide, fourteen, 50 * k))
        seconds["late"].append(clock(decide, late, 50 * k))
    ms = {name: 1e3 * np.median(values) / 50 for name, values in seconds.items()}
    rows = [["a decision and update, 7 arms, g = 50: textbook / ours", f"{ms['ours']:.2f} ms",
             ms["textbook"] / ms["ours"], ">= 10", ms["textbook"] / ms["ours"] >= 10],
            ["14 arms / 7 arms: linear in arms", f"{ms['14 arms']:.2f} ms", ms["14 arms"] / ms["ours"], "<= 2.2",
             ms["14 arms"] / ms["ours"] <= 2.2],
            ["after 1500 steps / at the start: independent of t", f"{ms['late']:.2f} ms", ms["late"] / ms["ours"], "<= 1.3",
             ms["late"] / ms["ours"] <= 1.3]]

    P = 20 if o.quick else 100
    agents = [nlts.NeuralLinearTS(nlts.MLP(9, 7, seed=k), 7, P=P, seed=k, memory=700) for k in range(25)]
    for agent in agents:
        for t in range(400):
            agent.buffer.add(problem.contexts[t], t % 7, problem.rewards[t, t % 7])
    one = agents[0]
    plain = (one.network, one.buffer, P, one.config.batch, one.config.lr, one.rng)
    nlts.train(*plain)                                                   # torch imports its optimizers at the first call
    train = {name: [] for name in ("plain", 1, GROUP, 25)}
    for _ in range(blocks):
        train["plain"].append(clock(nlts.train, *plain) / P)
        for size in (1, GROUP, 25):
            train[size].append(clock(train_together, agents[:size]) / P / size)
    train = {name: 1e3 * np.median(values) for name, values in train.items()}
    for size in (1, GROUP, 25):
        rows.append([f"a mini-batch, {size} network{'s' * (size > 1)} trained together: plain loop / ours",
                     f"{train[size]:.3f} ms", train["plain"] / train[size], ">= 3" if size > 1 else "",
                     train["plain"] / train[size] >= 3 if size > 1 else None])

    steps = 850 if o.quick else 4000
    tasks = {name: make_task(o, "speed", "statlog", name, steps) for name in ("both-priors", "no-prior")}
    run = {name: [] for name in tasks}
    for k in range(2):
        for name, task in tasks.items():
            run[name].append(run_task(task | {"runs": [k]})[0]["seconds"]["total"])
    both, none = np.median(run["both-priors"]), np.median(run["no-prior"])
    rows.append([f"a limited-memory run of {steps} steps: both priors / no prior", f"{both:.2f} s", both / none, "<= 1.5",
                 both / none <= 1.5])
    print_table(["what", "ours", "ratio", "goal", ""],
                [[what, ours, f"{ratio:.2f}", goal, "" if met is None else "met" if met else "not met"]
                 for what, ours, ratio, goal, met in rows])
    save(o, "speed", {"decision_seconds": seconds, "train_ms": {str(k): v for k, v in train.items()}, "run_seconds": run})
    rough(o)


# Command line -------------------------------------------------------------------------------------------------------

COMMANDS = {  # function, what it reproduces, how long on two cores, what it needs
    "forgetting": (forgetting, 'Fig. "Catastrophic forgetting"', "1.5 min", "nothing"),
    "table": (table, "the table of ten data sets", "90 min", "nothing for 3 data sets, downloads for the rest"),
    "amazon": (amazon, "the table of Sec. 4.3 (text)", "hours", "the Amazon reviews"),
    "wheel": (wheel, "table and figure of Appendix B", "15 min", "nothing"),
    "speed": (speed, "nothing in the paper: what a step and a phase cost", "1 min", "nothing"),
}


def parse(argv):
    """The command line as a namespace."""
    parser = argparse.ArgumentParser(
        description="Reproduce the paper's figures and tables.", formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + text_table(["", "reproduces", "two cores", "needs"], [[name, *row[1:]] for name, row in COMMANDS.items()])
        + "\n\nexample: python experiments.py table --datasets statlog mushroom --runs 20 --jobs 2")
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND", help="see below")
    parser.add_argument("--runs", type=int, help="number of runs (default: as in the paper)")
    parser.add_argument("--steps", type=int, help="steps a run (default: as in the paper)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one a core, here %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other runs (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="folder for figures and numbers (default: figures, with --quick figures/quick)")
    parser.add_argument("--quick", action="store_true", help="a rough version in under 30 seconds")
    parser.add_argument("--data-dir", type=Path, help="where downloaded data is (default: $NLTS_DATA, then the cache)")
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), metavar="NAME",
                        help=f"only these of {', '.join(ALGORITHMS)}")
    parser.add_argument("--datasets", nargs="+", choices=PAPER_TABLE, metavar="NAME", help="table: only these data sets")
    parser.add_argument("--csv", type=Path, help="table: your own data, a table whose last column is the class")
    parser.add_argument("--dask", metavar="ADDRESS", help="play the runs on a running Dask cluster")
    o = parser.parse_args(argv)
    for name in ("runs", "steps", "jobs"):
        if getattr(o, name) is not None and getattr(o, name) < 1:
            parser.error(f"--{name}: expected at least 1, got {getattr(o, name)}")
    if o.command is None:
        parser.print_help()
        sys.exit(0)
    o.out = o.out or HERE / "figures" / ("quick" if o.quick else "")
    return o


def main(argv=None):
    """Run one command."""
    o = parse(argv)
    try:
        COMMANDS[o.command][0](o)
    except datasets.DataError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
