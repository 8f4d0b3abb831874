"""Every figure and table of the paper is one command; `python experiments.py` lists them.

Each command prints what a reader wants to know, draws its picture into figures/ and saves the numbers it was drawn
from beside it. Runs are independent tasks: a run's rows, their order, the network's first weights and the sampling
depend on (experiment, data set, run) only, so all algorithms see the same problem, and no result depends on --jobs.
"""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")                            # before numpy: one thread a process

import argparse  # noqa: E402
import copy  # noqa: E402
import hashlib  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import multiprocessing  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
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

# Name, label and arguments of NeuralLinearTS (None: LinearTS); the paper's five in its order, then our references.
ALGORITHMS = {
    "linear": ("Linear", None),
    "neural-linear": ("Neural-linear, full memory", {"memory": None}),
    "both-priors": ("Limited memory, both priors", {"priors": "both", "mu0": "averaged"}),
    "mu-prior": ("Limited memory, μ prior", {"priors": "mean", "mu0": "last-layer"}),
    "no-prior": ("Limited memory, no prior", {"priors": "none"}),
    "perfect-prior": ("Perfect prior, our reference", {"priors": "perfect"}),
    "last-layer": ("Both priors, μ⁰ the last layer", {"priors": "both", "mu0": "last-layer"}),
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
    name, n_arms, config, variant = task["algorithm"], problem.n_arms, task["config"], VARIANTS.get(task["variant"], {})
    if name == "linear":
        return nlts.LinearTS(problem.dim + 1, n_arms, seed=seed)
    if problem.vocabulary is None:
        network = variant.get("network", nlts.MLP)(problem.dim, n_arms, seed=seed)
    else:
        network = FastTextCNN(problem.vocabulary, n_arms, seed=seed)
    if name.startswith("ε="):
        return nlts.EpsilonGreedy(network, n_arms, float(name[2:]), seed=seed, **config)
    arguments = {"memory": task["memory"] * n_arms} | task["arguments"] | variant.get("arguments", {})
    return variant.get("agent", nlts.NeuralLinearTS)(network, n_arms, seed=seed, **arguments, **config)


def play(problems, agents):
    """Let each agent play its problem, in lockstep so that networks can be trained together.

    Returns the rewards (runs, steps) and the seconds by part; train and priors are the learning phase.
    """
    start, seconds = time.perf_counter(), {"train": 0.0, "priors": 0.0}
    together = all(getattr(type(agent), "learn", 0) is nlts.NeuralLinearTS.learn and
                   type(agent.network).features is nlts.MLP.features for agent in agents)
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
    for agent in agents:
        agent.rng.integers(2 ** 31)                                      # drawn by nlts.train for torch, unused by an MLP
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


class FastTextCNN(nlts.TextCNN):
    """nlts.TextCNN, three to four times faster: the same parameters, features and gradients, up to rounding.

    A convolution is the sum, over its width, of products of embeddings and weights: each product is computed once a
    word, not once a place. And only the place of the maximum gets a gradient, so no other place is differentiated.
    """

    def features(self, x):
        """phi: (n, words) ids -> (n, g)."""
        words, place = x.long().unique(return_inverse=True)
        embedding, pooled = self.embedding(words), []
        for convolution in self.convolutions:
            filters, _, width = convolution.weight.shape
            products = [embedding @ convolution.weight[:, :, k].T for k in range(width)]   # (words, filters) each
            with torch.no_grad():
                ends = place.shape[1] - width + 1
                at = sum(products[k][place[:, k:ends + k]] for k in range(width)).argmax(1)    # (n, filters)
            each = torch.arange(filters)
            most = sum(products[k][place.gather(1, at + k), each] for k in range(width))
            pooled.append(torch.relu(most + convolution.bias))
        return self.dense(torch.cat(pooled, 1))


@contextmanager
def swapped(module, **functions):
    """Other functions in a module, for a while."""
    kept = {name: getattr(module, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(module, name, function)
        yield
    finally:
        for name, function in kept.items():
            setattr(module, name, function)


def run_task(task):
    """Some runs of one algorithm on one data set: a list of result lines."""
    torch.set_num_threads(1)
    run_seeds = [run_seed(task["experiment"], task["dataset"], run, task["seed"]) for run in task["runs"]]
    problems = [make_problem(task, seed) for seed in run_seeds]
    agents = [make_agent(task, problem, seed) for problem, seed in zip(problems, run_seeds)]
    with swapped(nlts, **VARIANTS.get(task["variant"], {}).get("swap", {})):
        rewards, seconds = play(problems, agents)
    lines = []
    for run, seed, problem, earned in zip(task["runs"], run_seeds, problems, rewards):
        line = {"dataset": task["dataset"], "algorithm": task["algorithm"], "run": run, "seed": seed,
                "steps": len(earned), "dim": problem.dim, "arms": problem.n_arms, "reward": round(earned.sum(), 6),
                "optimal": round(float(problem.optimal.sum()), 6),
                "seconds": {part: round(s / len(agents), 3) for part, s in seconds.items()}, "config": task["hash"]}
        if task["variant"]:
            line["variant"] = task["variant"]
        if task["trace"]:
            line["regret"] = [int(x) if x == int(x) else round(x, 6) for x in (problem.optimal - earned).tolist()]
        lines.append(line)
    return lines


def run_anywhere(folder, function, task):
    """A function of this file in a process that has not imported it, as a Dask worker: needs only its arguments."""
    import sys
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import experiments
    return getattr(experiments, function)(task)


# Tasks and results files --------------------------------------------------------------------------------------------

def config_hash(task):
    """Names everything that a result depends on, but for the run number."""
    key = {name: value for name, value in task.items() if name not in ("runs", "data_dir", "trace", "hash")}
    if task.get("csv"):
        key["csv"] = hashlib.sha256(Path(task["csv"]).read_bytes()).hexdigest()
    if task["variant"]:                                                  # a label may stay where its meaning changes
        variant = VARIANTS[task["variant"]]
        key["made by"] = [inspect.getsource(part) for part in (variant.get("agent"), variant.get("network")) if part]
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]


def make_task(o, experiment, dataset, algorithm, steps, trace=False, csv=None, memory=MEMORY, variant=None, **hyper):
    """What one algorithm, or a variant of it, is to do on one data set; `runs` is filled in by `execute`."""
    config = {} if algorithm == "linear" else asdict(nlts.Config(**hyper))
    task = {"experiment": experiment, "dataset": dataset, "algorithm": algorithm, "steps": steps, "seed": o.seed,
            "memory": memory, "config": config, "arguments": ALGORITHMS.get(algorithm, ("", None))[1], "variant": variant,
            "csv": csv and str(csv), "data_dir": o.data_dir and str(o.data_dir), "trace": trace}
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


def stop_with(parent):
    """A worker whose parent was killed stops within a second, too."""
    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def executor(o):
    """Where runs are played: processes on this machine, or with --dask the workers of a Dask cluster."""
    if not o.dask:
        with ProcessPoolExecutor(o.jobs, multiprocessing.get_context("spawn"), stop_with, (os.getpid(),)) as pool:
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
    total = sum(len(task["runs"]) for task in todo)
    if todo:
        with executor(o) as pool, open(path, "a") as file:
            futures = [pool.submit(run_anywhere, str(HERE), "run_task", task) for task in todo]
            progress(0, total)
            try:
                for future in as_completed(futures):
                    lines += future.result()
                    file.writelines(json.dumps(line) + "\n" for line in future.result())
                    file.flush()
                    os.fsync(file.fileno())
                    progress(len(lines) - len(done), total)
            except KeyboardInterrupt:
                sys.exit(f"\nstopped; what is finished is in {path}, the same command goes on from there")
            finally:
                for future in futures:                                   # after an error: what waits is not played in vain
                    future.cancel()
    return sorted(lines, key=lambda line: (line["dataset"], line["algorithm"], line["run"]))


def progress(done, total, what="runs", started={}):
    """A progress line with the time left, on standard error; a log file gets one at most every half minute."""
    now = time.monotonic()
    if done == 0 or what not in started:
        started[what], started["shown"] = now - 1e-3, 0.0
    if not sys.stderr.isatty() and now - started["shown"] < 30 and 0 < done < total:
        return
    started["shown"] = now
    seconds = (now - started[what]) * (total - done) / done if done else 0
    left = f", {seconds // 60:.0f}:{seconds % 60:02.0f} min left" if done else ""
    print(f"{what}: {done} of {total}{left}   ", end="\r" if sys.stderr.isatty() and done < total else "\n",
          file=sys.stderr, flush=True)


# Printing, drawing, saving ------------------------------------------------------------------------------------------

def save(o, name, data, figure=None):
    """Write the numbers to out/name.json and the picture to out/name.png, and say so."""
    o.out.mkdir(parents=True, exist_ok=True)
    path = o.out / f"{name}.json"
    part = path.with_suffix(".json.part")
    config = {"command": o.command, "seed": o.seed, "quick": o.quick}
    part.write_text(json.dumps({"config": config, **data}, separators=(",", ":")) + "\n")
    os.replace(part, path)
    print(f"\nnumbers: {os.path.relpath(path)}")
    if figure is not None:
        figure.savefig(path.with_suffix(".png"), dpi=150)
        print(f"figure:  {os.path.relpath(path.with_suffix('.png'))}")


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
    names = [name for name in ALGORITHMS if name in o.algorithms and name != "last-layer"]
    tasks = [make_task(o, "forgetting", "statlog", name, steps, trace=True) for name in names]
    lines = execute(o, "forgetting", tasks, runs)
    regret = {name: np.array([line["regret"] for line in lines if line["algorithm"] == name]) for name in names}
    reward = {name: [line["reward"] for line in lines if line["algorithm"] == name] for name in names}
    phases = np.arange(L, steps - 49, L)                                 # retrained after these steps
    after = {name: np.mean([r[:, p:p + 50].mean(1) for p in phases], 0) for name, r in regret.items()}
    before = {name: np.mean([r[:, p - 50:p].mean(1) for p in phases], 0) for name, r in regret.items()}
    header = ["Statlog", "reward", "regret", "regret/step before", "after retraining", "ratio"]
    rows = [[ALGORITHMS[n][0], mean_sd(reward[n]), mean_sd(regret[n].sum(1)), f"{before[n].mean():.4f}",
             f"{after[n].mean():.4f}", f"{after[n].mean() / max(before[n].mean(), 1e-9):.2f}"] for n in names]
    print_table(header, [row for row, name in zip(rows, names) if name != "perfect-prior"])
    if "perfect-prior" in names:
        print_table(["For reference"] + header[1:], rows[-1:])
    print(f"mean ± standard deviation of {runs} runs of {steps} steps; before and after: the 50 steps around each of "
          f"the {len(phases)} retrainings")
    claims(regret, after)
    for name in ("both-priors", "no-prior"):
        if name in names:
            ratio = after[name].mean() / max(before[name].mean(), 1e-9)
            print(f"- {ALGORITHMS[name][0].lower()}: regret after a retraining over that before: {ratio:.2f}, "
                  f"{'no peaks' if ratio <= 1.25 else 'peaks'} (at most 1.25, our threshold)")
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
        panel.set_facecolor("0.94" if name == "perfect-prior" else "white")    # not of the paper's five
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
    rewards = by_dataset(lines)
    if rewards:
        text = kinds_text(rewards) + "\n\n" + goals_text(rewards) + "\n\n" + paper_text(rewards, lines)
        print("\n" + text)
        (o.out / "kinds.txt").write_text(text + "\n")
        kinds_figure(rewards).savefig(o.out / "kinds.png", dpi=150)
        print(f"\nfigure:  {os.path.relpath(o.out / 'kinds.png')}")
    parts = {part: sum(line["seconds"].get(part, 0) for line in lines) for part in ("total", "train", "priors")}
    share = max((np.mean([line["seconds"]["priors"] / line["seconds"]["total"] for line in lines
                          if line["dataset"] == d and line["algorithm"] == "both-priors"] or [0]), d)
                for d in {line["dataset"] for line in lines})
    print(f"\nprocessor time {parts['total'] / 60:.1f} minutes, of which training {parts['train'] / parts['total']:.0%} and "
          f"priors {parts['priors'] / parts['total']:.0%}; with both priors their share is at most {share[0]:.0%} ({share[1]})")
    print(f"numbers: {os.path.relpath(o.out / 'table.jsonl')}\ntable:   {os.path.relpath(o.out / 'table.md')}")
    rough(o)


def available_steps(o, dataset, quick=800):
    """5000, or as many as there are where rows are not drawn with replacement."""
    steps = o.steps or (quick if o.quick else 5000)
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


def by_dataset(lines):
    """{data set: {algorithm: rewards by run}} of the data sets on which all algorithms played, and played the same runs."""
    rewards = {}
    for line in lines:                                                   # sorted by run
        rewards.setdefault(line["dataset"], {}).setdefault(line["algorithm"], []).append(line["reward"])
    runs = {d: {len(r) for name, r in own.items()} for d, own in rewards.items()}
    return {d: {name: np.array(r) for name, r in rewards[d].items()} for d in
            sorted(rewards, key=lambda d: list(PAPER_TABLE).index(d) if d in PAPER_TABLE else 99)
            if set(rewards[d]) == set(ALGORITHMS) and len(runs[d]) == 1 and min(runs[d]) > 1}


def share(part, whole):
    """mean(part) / mean(whole) over runs, and its standard error by the jackknife."""
    n, left_out = len(part), (part.sum() - part) / (whole.sum() - whole)
    return part.mean() / whole.mean(), np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())


def kinds(own):
    """What the network forgets, what the posterior forgets, and the shares of the latter that two kinds of mu0 win back."""
    full, perfect, none = own["neural-linear"], own["perfect-prior"], own["no-prior"]
    return full - perfect, perfect - none, *(share(own[name] - none, perfect - none) for name in ("both-priors", "last-layer"))


def kinds_text(rewards):
    """Two kinds of forgetting, as a table."""
    rows = []
    for d, own in rewards.items():
        network, posterior, both, last = kinds(own)
        scale = 100 / own["neural-linear"].mean()
        rows.append([Path(d).stem.capitalize(),
                     *("{:.0f} ± {:.0f} ({:+.1f} %)".format(*paired(x, 0), scale * x.mean()) for x in (network, posterior)),
                     *("{:.0f} ± {:.0f} %".format(100 * x, 100 * e) for x, e in (both, last))])
    median = [np.median([kinds(own)[k][0] for own in rewards.values()]) for k in (2, 3)]
    rows.append(["Median", "", "", *(f"{100 * x:.0f} %" for x in median)])
    header = ["reward lost", "by the network", "by the posterior", "won back by both priors", "with μ⁰ the last layer"]
    return text_table(header, rows) + (
        "\nnetwork: full memory - perfect prior; posterior: perfect prior - no prior; in brackets: of full memory's reward;"
        "\nwon back: (both priors - no prior) / (perfect prior - no prior); mean ± standard error, paired by run")


def goals_text(rewards):
    """Both priors against the μ prior, no prior and full memory, paired by run, and how often which goal is met."""
    rows, better, clear, near = [], 0, 0, 0
    for d, own in rewards.items():
        against = [paired(own["both-priors"], own[name]) for name in ("mu-prior", "no-prior", "last-layer", "neural-linear")]
        relative = against[3][0] / own["neural-linear"].mean()
        better += all(x >= 0 for x, _ in against[:2])
        clear += all(x > error for x, error in against[:2])
        near += relative >= -0.02
        median = np.median(own["both-priors"] - own["neural-linear"]) / own["neural-linear"].mean()
        rows.append([Path(d).stem.capitalize(), *("{:+.0f} ± {:.0f}".format(*x) for x in against), f"{100 * relative:+.1f} %",
                     f"{100 * median:+.1f} %"])
    n, median = len(rewards), np.median([kinds(own)[2][0] for own in rewards.values()])
    header = ["both priors minus", "μ prior", "no prior", "μ⁰ the last layer", "full memory", "relative", "(median)"]
    text = text_table(header, rows)
    goals = [["both priors at least as good as μ prior and no prior", "all", f"{better} of {n}", better == n],
             ["- by more than one standard error", ">= 6", f"{clear} of {n}", clear >= 6],
             ["won back of what the posterior forgets, median", ">= 80 %", f"{100 * median:.0f} %", median >= 0.8],
             ["within 2 % of full memory's reward, or better", ">= 6", f"{near} of {n}", near >= 6]]
    return text + "\n\n" + text_table(["", "goal", "measured", ""],
                                      [[*row[:3], "met" if row[3] else "not met"] for row in goals])


def paper_text(rewards, lines):
    """Ours minus the paper's where the number of steps is the same."""
    rows, comparable = [], {line["dataset"] for line in lines if line["steps"] == 5000}
    for d, own in rewards.items():
        if d in PAPER_TABLE and d in comparable:
            cells = []
            for name, (mean, sd) in zip(ALGORITHMS, PAPER_TABLE[d]):
                r = own[name]
                error = np.sqrt(r.var(ddof=1) / len(r) + sd ** 2 / 50)
                cells.append(f"{r.mean() - mean:+.0f} ± {error:.0f}")
            rows.append([d.capitalize(), *cells[:3], f"{own['linear'].std(ddof=1):.0f}"])
    header = ["ours minus the paper's", *(ALGORITHMS[name][0] for name in list(ALGORITHMS)[:3]), "spread between draws"]
    return text_table(header, rows) + (
        "\n± standard error of both together. The authors' runs share one draw of the rows, ours draw anew: what one draw may"
        "\nadd is not in it but in the last column, the standard deviation of our linear runs.")


def kinds_figure(rewards):
    """Two kinds of forgetting over all data sets: how much reward each costs, and what the priors win back."""
    plt, y = pyplot(), np.arange(len(rewards))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 1.2 + 0.42 * len(rewards)), sharey=True)
    for i, (d, own) in enumerate(rewards.items()):
        network, posterior, both, last = kinds(own)
        scale = 100 / own["neural-linear"].mean()
        for x, shift, color, hatch in ((network, -0.19, "#E69F00", "///"), (posterior, 0.19, "#0072B2", "")):
            value, error = paired(scale * x, 0)
            left.barh(i + shift, value, 0.36, xerr=error, color=color, hatch=hatch, edgecolor="black", linewidth=0.5,
                      error_kw={"linewidth": 0.8, "capsize": 2})
            left.text(max(value, 0) + error + 0.3, i + shift, f"{value:.1f}", va="center", fontsize=7)
        for (value, error), shift, color, marker in ((both, -0.12, "black", "o"), (last, 0.12, "#D55E00", "s")):
            right.errorbar(100 * value, i + shift, xerr=100 * error, color=color, marker=marker, markersize=5, linewidth=1,
                           markerfacecolor=color if marker == "o" else "white", linestyle="none")
    bars = [plt.Rectangle((0, 0), 1, 1, facecolor=c, hatch=h, edgecolor="black", linewidth=0.5)
            for c, h in (("#E69F00", "///"), ("#0072B2", ""))]
    left.legend(bars, ["the network: full memory - perfect prior", "the posterior: perfect prior - no prior"], fontsize=7,
                loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    left.set_yticks(y, [Path(d).stem.capitalize() for d in rewards])
    left.set_ylim(len(rewards) - 0.4, -0.6)
    left.margins(x=0.12)
    left.axvline(0, color="black", linewidth=0.8)
    left.set_xlabel("reward forgotten, % of full memory's")
    for x, line in ((0, ":"), (80, "--"), (100, "-")):
        right.axvline(x, color="0.6", linewidth=0.8, linestyle=line, zorder=0)
    right.plot([], [], "o", color="black", label="both priors")
    right.plot([], [], "s", color="#D55E00", markerfacecolor="white", label="both priors, μ⁰ the last layer (the paper)")
    right.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    right.set_xlabel("won back of what the posterior forgets, %\n(0: no prior, 100: perfect prior, dashed: our goal)")
    right.set_xlim(left=min(-8, right.get_xlim()[0]))
    runs = sorted({len(own["no-prior"]) for own in rewards.values()})
    figure.suptitle(f"Two kinds of forgetting, mean of {' or '.join(map(str, runs))} runs ± 1 standard error", fontsize=10)
    return figure


# Sec. 4.3: text -----------------------------------------------------------------------------------------------------

def amazon(o):
    """Text CNN on Amazon reviews: epsilon-greedy with ten values of epsilon, full memory, limited memory."""
    try:
        ratings = datasets.table(datasets.SOURCES["amazon"], o.data_dir).y
    except datasets.MissingData as error:
        sys.exit(f"skipped: {error}")
    steps, runs = min(o.steps or (450 if o.quick else 5000), len(ratings)), o.runs or (1 if o.quick else 10)
    greedy = [f"ε={k / 10:.1f}" for k in range(1, 11)]
    names = [*(greedy[:1] if o.quick else greedy), "neural-linear", "both-priors"]
    P = {name: 5 if o.quick else 0 if name == "ε=1.0" else nlts.Config.P for name in names}    # any arm: nothing to learn
    lines = execute(o, "amazon", [make_task(o, "amazon", "amazon", name, steps, P=P[name]) for name in names], runs)
    reward = {name: [line["reward"] for line in lines if line["algorithm"] == name] for name in names}
    best = max(greedy, key=lambda name: np.mean(reward.get(name, -np.inf)))
    rows = [[ALGORITHMS.get(name, (f"ε-greedy, {name}",))[0] + (" (best ε)" if name == best else ""), mean_sd(reward[name], 1),
             "{} ± {}".format(*PAPER_AMAZON.get("ε-greedy" if name == "ε=0.1" else name, ("", ""))).strip(" ±")]
            for name in names]
    print_table(["Amazon reviews", "reward", "the paper's (5000 steps)"], rows)
    print(f"mean ± standard deviation of {runs} runs of {steps} steps; {len(ratings)} reviews are here, the complete file that "
          f"the paper draws from has 413,840.\nAlways playing the commonest rating earns about "
          f"{steps * max(np.mean(ratings == rating) for rating in set(ratings)):.0f}.")
    save(o, "amazon", {"steps": steps, "runs": runs, "reward": reward})
    rough(o)


# Appendix B: the wheel ----------------------------------------------------------------------------------------------

def wheel(o):
    """The wheel bandit: reward for three sizes of the inner circle, and a picture of what was learned."""
    steps, runs, hyper = o.steps or (1000 if o.quick else 4000), o.runs or (2 if o.quick else 50), {"L": 200, "P": 400}
    names = [name for name in ("linear", "neural-linear", "both-priors") if name in o.algorithms]
    names += ["both-priors, b⁰ = 0.06"] * ("both-priors" in names)       # expects the noise that there is
    tasks = {(delta, name): make_task(o, "wheel", f"wheel {delta}", name.split(",")[0], steps,
                                      **hyper | ({"b0": 0.06} if "," in name else {})) for delta in PAPER_WHEEL for name in names}
    lines = execute(o, "wheel", list(tasks.values()), runs)
    rows, reward = [], {}
    for delta, paper in PAPER_WHEEL.items():
        reward[delta] = {name: [line["reward"] for line in lines if line["config"] == tasks[delta, name]["hash"]]
                         for name in names}
        theirs = dict(zip(("linear", "both-priors"), paper))
        rows.append([f"δ = {delta}", *(mean_sd(reward[delta][name], 1) for name in names),
                     *("{} ± {}".format(*theirs[name]) for name in names if name in theirs),
                     f"{np.mean([line['optimal'] for line in lines if line['dataset'] == f'wheel {delta}']):.0f}",
                     f"{0.2 * steps:.0f}"])
    labels = {name: ALGORITHMS.get(name, ["- " + name.split(", ")[-1]])[0] for name in names}
    print_table(["wheel", *labels.values(), *(f"paper: {labels[name]}" for name in names if name in theirs), "optimum",
                 "safe arm"], rows)
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
            panel.add_patch(plt.Circle((0, 0), delta, fill=False, color="black", linewidth=0.8))
            panel.set_xticks([-1, 0, 1])
            panel.set_yticks([-1, 0, 1])
    for i, panel in enumerate(axes[0]):
        panel.set_title(f"arm {i + 1}")
    figure.colorbar(dots, ax=axes, label="reward", shrink=0.8)
    figure.suptitle(f"Wheel, δ = {delta}: one run of {steps} steps; the circle is ‖x‖ = δ", fontsize=9)
    return figure


# Drawing growth ---------------------------------------------------------------------------------------------------

def panels(title, n=3):
    """A row of panels with logarithmic y axes under one caption line."""
    figure, axes = pyplot().subplots(1, n, figsize=(4 * n, 3.9))
    figure.suptitle(title, fontsize=10)
    for axis in axes:
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
    return figure, axes


def curve(axis, i, x, y, label, error=None, **options):
    color, line, marker = STYLES[i]
    options = dict(color=color, linestyle=line, marker=marker, markersize=4, capsize=2) | options
    axis.errorbar(x, y, error, label=label, **options)


def loglog(axis):
    """Plain numbers on both axes, at 1, 2 and 5 of each decade if there are few; room for the legend at the top."""
    from matplotlib import ticker
    axis.set_xscale("log")
    low, high = axis.get_ylim()
    axis.set_ylim(low, high * (high / low) ** 0.3)
    for side in (axis.xaxis, axis.yaxis):
        low, high = side.get_view_interval()
        side.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
        side.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        side.set_minor_formatter(ticker.NullFormatter())
    axis.legend(fontsize=8, loc="upper left")


def growth(x, y, least=0, most=np.inf):
    """p of y ~ x^p by least squares in logarithms over least <= x <= most, and its standard error."""
    x, y = np.log([(u, v) for u, v in zip(x, y) if least <= u <= most]).T
    x, y = x - x.mean(), y - y.mean()
    p = x @ y / (x @ x)
    return float(p), float(np.sqrt(np.sum((y - p * x) ** 2) / max(len(x) - 2, 1) / (x @ x)))


# Appendix C: the analysis in numbers --------------------------------------------------------------------------------

PRIORS = "analytical prior", "likelihood matching", "no prior"


def representation_changes(rng, g, n, changes, new):
    """phi = A b, and A changes again and again; the last n tuples are kept, `new` tuples come between changes.

    Relative errors of the posterior's mean and precision after each change, against the regression on all data. Its
    prior is the initial lam I, seen in the features of the moment.
    """
    draw_A = lambda: np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.5, 2, g)
    arm, full = nlts.BayesianLinearRegression(g), nlts.BayesianLinearRegression(g)
    mu, b, r, errors, A = rng.normal(size=g), np.empty((0, g)), np.empty(0), [], draw_A()
    first = np.linalg.inv(A)
    for _ in range(changes):
        b = np.vstack([b, rng.normal(size=(new, g))])
        r = np.append(r, b[-new:] @ mu + 0.5 * rng.normal(size=new))
        arm.update(b[-new:] @ A.T, r[-new:])
        E_old, A = b[-n:] @ A.T, draw_A()                                # the representation changes
        E_new, M = b[-n:] @ A.T, A @ first
        Phi_old, mu_old = nlts.forgotten(arm, E_old, r[-n:])
        mu0, Phi0 = nlts.invertible_prior(E_old, E_new, mu_old, Phi_old)
        arm.restart(Phi0, mu0, E_new, r[-n:])
        full.restart(nlts.Config.lam * M @ M.T, np.zeros(g), b @ A.T, r)
        errors.append([np.linalg.norm(x - y) / np.linalg.norm(y)
                       for x, y in ((arm.mu_hat, full.mu_hat), (arm.precision, full.precision))])
    return errors                                                        # (changes, 2)


def prior_errors(rng, g, n, eps, m=400):
    """Two errors of each of PRIORS after one change of features from b to phi = M b + eps tanh(W b), M a rotation.

    Contexts vary ten times more along some axes than along others; m tuples were evicted, n are kept. The reference
    is a full memory: the regression on the new features of all m + n tuples. On 200 held-out contexts: the relative
    error of the mean prediction, and the mean |log s^2 - log s^2 of the reference|.
    """
    c, (skew, W) = nlts.Config, rng.normal(size=(2, g, g)) / np.sqrt(g)
    from scipy.linalg import expm                                        # slow to import
    M, scale = expm((skew - skew.T) / 2), rng.permutation(np.geomspace(0.3, 3, g))
    b, b_test = scale * rng.normal(size=(m + n, g)), scale * rng.normal(size=(200, g))
    r = b @ rng.normal(size=g) + 0.5 * rng.normal(size=m + n)
    phi = lambda b: b @ M.T + eps * np.tanh(b @ W.T)
    arm, full, test = nlts.BayesianLinearRegression(g), nlts.BayesianLinearRegression(g), phi(b_test)
    arm.update(b, r)
    full.update(phi(b), r)
    E_old, E_new, r = b[m:], phi(b[m:]), r[m:]
    Phi_old, mu_old = nlts.forgotten(arm, E_old, r)
    # Appendix C; directions that the buffer does not see keep the initial prior
    mu0, Phi0 = nlts.invertible_prior(E_old, E_new, mu_old, Phi_old)
    analytical = Phi0 + c.lam * (np.eye(g) - np.linalg.pinv(E_new) @ E_new), mu0
    # as NeuralLinearTS(mu0="matched") does it
    s2 = np.sum(E_old.T * np.linalg.solve(Phi_old, E_old.T), axis=0)
    A, C = nlts.transport(E_old, E_new)
    anchor = nlts.transported_covariance(Phi_old, A, C, m, c.lam)
    S = nlts.match_covariance(E_new, s2, anchor, c.ridge, c.kappa)
    matched = np.linalg.inv(S), nlts.transported_mean(Phi_old, mu_old, A, anchor)
    errors, log_s2 = [], lambda arm: np.log(np.sum(test.T * np.linalg.solve(arm.precision, test.T), axis=0))
    for prior in (analytical, matched, (c.lam * np.eye(g), np.zeros(g))):
        arm.restart(*prior, E_new, r)
        errors.append([np.linalg.norm(test @ (arm.mu_hat - full.mu_hat)) / np.linalg.norm(test @ full.mu_hat),
                       np.abs(log_s2(arm) - log_s2(full)).mean()])
    return errors                                                        # (3 priors, 2 measures)


def sanity(o):
    """Appendix C in numbers: the analytical prior is exact for linear features and n >= g; what if they are not?"""
    g, runs, changes = 20, o.runs or (3 if o.quick else 20), list(range(1, 11))
    ratios, epsilons = [2, 1.5, 1.2, 1, 0.9, 0.8, 0.6, 0.4, 0.2], [0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1]
    exact, few, bent = [], [], []
    for run in range(runs):
        progress(run, runs, "sanity")
        rng = np.random.default_rng([o.seed, run])
        exact.append(representation_changes(rng, g, 2 * g, len(changes), 5 * g))
        few.append([prior_errors(rng, g, round(ratio * g), 0.0) for ratio in ratios])
        bent.append([prior_errors(rng, g, 5 * g, eps) for eps in epsilons])
    exact, few, bent = np.array(exact), np.array(few), np.array(bent)    # (runs, sizes, [priors,] measures)
    mean_and_error = lambda x: (x.mean(0), x.std(0, ddof=min(1, runs - 1)) / np.sqrt(runs))

    figure, axes = panels(f"Appendix C: error against full memory, g = {g}, mean and standard error of {runs} runs")
    mean, error = mean_and_error(exact)
    for i, label in enumerate(("posterior mean", "posterior precision")):
        curve(axes[0], i, changes, mean[:, i], label, error[:, i])
    print_table(["representation changes", "error of mean", "of precision"],
                [[k, f"{x:.1e}", f"{y:.1e}"] for k, (x, y) in zip(changes, mean)])
    for axis, name, x, values, floor in ((axes[1], "n/g", ratios, few, 0.02), (axes[2], "eps", epsilons, bent, 4e-4)):
        mean, error = mean_and_error(values)
        for i, prior in enumerate(PRIORS):
            for k, (what, fill) in enumerate((("predictions", None), ("log s²", "white"))):
                curve(axis, i, [u or np.nan for u in x], mean[:, i, k].clip(floor), f"{prior}: {what}",
                      error[:, i, k], markerfacecolor=fill)              # a logarithmic axis has no eps = 0
        print()
        print_table([name, *(f"{prior}: {what}" for prior in PRIORS for what in ("mean", "log s2"))],
                    [[size, *(f"{u:.2g} ± {v:.1g}" for u, v in zip(m.flat, e.flat))]
                     for size, m, e in zip(x, mean, error)])
        axis.set(ylabel="relative error of predictions, mean |Δ log s²|", ylim=(floor, None))
    axes[0].set(title="linear features, n = 2g,\nanalytical prior", xlabel="representation changes k",
                ylabel="relative error", ylim=(1e-16, 1e-11))
    axes[1].set(title="linear features, few tuples\n(lower edge: exact, 1e-14)", xlim=(2.05, 0.15),
                xlabel="tuples in the buffer over features, n/g")
    axes[2].set(title="nonlinear features, n = 5g\n(at eps = 0 exact, 1e-14)", xscale="log",
                xlabel="eps in φ = M b + eps tanh(W b)")
    axes[0].legend(fontsize=8)
    axes[2].legend(fontsize=7, loc=(0.02, 0.58))

    worst, matching = exact.max(), max(few[:, :4, 1].max(), bent[:, 0, 1].max())     # n >= g; eps = 0
    hardest = few[:, -1].mean(0), bent[:, -1].mean(0)
    print(f"\nAppendix C, the analytical prior is exact with linear features and n >= g: "
          f"{'' if worst < 1e-8 else 'not '}supported, largest relative error in {len(changes)} changes {worst:.1e}.")
    print(f"Likelihood matching is exact there too: {'' if matching < 1e-8 else 'not '}supported, {matching:.1e}.")
    print(f"These assumptions are needed: {'' if min(x[0].min() for x in hardest) > 0.01 else 'not '}supported.")
    for what, x in zip(("n = 0.2 g", "eps = 1"), hardest):
        x = x[:2] / x[2]
        print(f"  {what}: errors of predictions and log s2, relative to those of no prior: analytical "
              f"prior {x[0, 0]:.2f} and {x[0, 1]:.2f}, likelihood matching {x[1, 0]:.2f} and {x[1, 1]:.2f}")
    save(o, "sanity", {"k": changes, "errors of mean, precision": exact.tolist(), "priors": PRIORS,
                       "measures": ["predictions", "log s2"], "n/g": ratios, "few tuples": few.tolist(),
                       "eps": epsilons, "nonlinear features": bent.tolist()}, figure)


# Sec. 3.1: complexity -----------------------------------------------------------------------------------------------

def growth_in_T(seed, T, L, P):
    """Seconds of each phase's (old features, train, priors) and bytes of the buffer, with full and limited memory.

    Both agents take turns at every step, so that a busy machine slows both.
    """
    problem, rows, now = datasets.load("statlog", T, seed), [], time.perf_counter
    agents = [nlts.NeuralLinearTS(nlts.MLP(problem.dim, problem.n_arms, seed=seed), problem.n_arms, memory, L=L, P=P,
                                  seed=seed) for memory in (None, 100 * problem.n_arms)]
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards), 1):
        phase = np.zeros((2, 4))
        for agent, row in zip(agents, phase):
            agent.learn = lambda: None                                   # its three steps are called from here
            arm = agent.act(context)
            agent.update(context, arm, rewards[arm])
            if t % L == 0:
                start, E_old, c = now(), agent.buffer_features(), agent.config
                before = now()
                nlts.train(agent.network, agent.buffer, c.P, c.batch, c.lr, agent.rng)
                after = now()
                agent.compute_priors(E_old)
                row[:] = before - start, after - before, now() - after, sum(
                    x[:agent.buffer.n].nbytes for x in vars(agent.buffer).values() if isinstance(x, np.ndarray))
        if t % L == 0:
            rows.append(phase)
    return np.array(rows)                                                # (phases, 2 agents, 3 seconds + bytes)


def priors_seconds(seed, sizes, repeats, dim=20):
    """Seconds of compute_priors for each of the sizes (N, n, g): N arms, n tuples each in the buffer, n evicted."""
    rng, cases, times = np.random.default_rng(seed), [], np.zeros((repeats, len(sizes)))
    for N, n, g in sizes:
        agent = nlts.NeuralLinearTS(nlts.MLP(dim, N, g, seed), N, n * N, seed=seed)
        agent.learn, W = lambda: None, rng.normal(size=(N, dim))
        for j, context in enumerate(rng.normal(size=(2 * n * N, dim))):
            agent.update(context, j % N, np.tanh(W[j % N] @ context))
        cases.append((agent, agent.arms, agent.buffer_features()))
        nlts.train(agent.network, agent.buffer, 20, agent.config.batch, agent.config.lr, agent.rng)
    for repeat in times:                                                 # all sizes take turns
        for i, (agent, arms, E_old) in enumerate(cases):
            agent.arms, start = copy.deepcopy(arms), time.perf_counter()
            agent.compute_priors(E_old)
            repeat[i] = time.perf_counter() - start
    return times


def complexity(o):
    """Sec. 3.1 measured: time and memory of learning phases against T, and time of the priors against N, n and g."""
    T, L, P = o.steps or (1500 if o.quick else 8000), 100 if o.quick else 400, 20
    runs, repeats = o.runs or (1 if o.quick else 3), 3 if o.quick else 9
    growth_in_T(o.seed, L, L, P)                                         # torch's first steps are slow
    rows = []
    for run in range(runs):
        progress(run, runs + 1, "complexity")
        rows.append(growth_in_T(o.seed + run, T, L, P))
    progress(runs, runs + 1, "complexity")
    arms, widths = [2, 4, 8] if o.quick else [2, 4, 8, 16], [10, 20, 50, 100] if o.quick else [10, 20, 50, 100, 200]
    tuples = [25, 50, 100, 200, 400] if o.quick else [25, 50, 100, 200, 400, 800, 1600]
    sizes = [(N, 100, 50) for N in arms] + [(2, n, 50) for n in tuples] + [(2, 100, g) for g in widths]
    times = priors_seconds(o.seed, sizes, repeats)
    by_N, by_n, by_g = np.split(times.min(0), [len(arms), len(arms) + len(tuples)])
    t, phases = np.arange(L, T + 1, L), np.min(rows, 0)                  # the fastest: busy moments drop out
    buffer, (features, train, priors, _) = phases[..., 3], phases.cumsum(0).transpose(2, 0, 1)
    seconds, least, turn = features + priors, max(T // 4, 700), tuples[-3]   # at t = 700 the limited buffer is full
    slope, constant = np.polyfit(t, phases[:, 0, 0] + phases[:, 0, 2], 1).clip(1e-9)     # a phase of full memory at t
    crossing = (np.diff(seconds[:, 1])[-len(t) // 2:].mean() - constant) / slope
    claims = [("full memory: time O(T²)", f"T >= {least}", 2, *growth(t, seconds[:, 0], least)),
              (f"- without {1000 * constant:.1f} ms a phase", f"T >= {least}", 2,
               *growth(t, seconds[:, 0] - constant * t / L, least)),
              ("full memory: buffer O(T)", f"T >= {least}", 1, *growth(t, buffer[:, 0], least)),
              ("limited memory: time O(T)", f"T >= {least}", 1, *growth(t, seconds[:, 1], least)),
              ("limited memory: buffer O(1)", f"T >= {least}", 0, *growth(t, buffer[:, 1], least)),
              ("priors: linear in arms N", "N >= 4", 1, *growth(arms, by_N, 4)),
              ("priors: at most linear in n", f"n <= {turn}", 1, *growth(tuples, by_n, 0, turn)),
              ("priors: at most linear in n", f"n >= {turn}", 1, *growth(tuples, by_n, turn)),
              ("priors: in g", "g >= 50", None, *growth(widths, by_g, 50))]
    supported = lambda what, power, p: p < power + 0.5 and (p > power - 0.5 or "most" in what)
    print(f"Statlog, L = {L}, P = {P} (training costs O(P) a phase either way, so P is small), {runs} run(s).\n"
          f"Exponents by least squares in logarithms. Supported: no other whole exponent is nearer.")
    print_table(["Sec. 3.1", "measured over", "claimed", "exponent", ""],
                [[what, over, "none" if power is None else power, f"{p:.2f} ± {e:.2f}",
                  "" if power is None else "supported" if supported(what, power, p) else "not supported"]
                 for what, over, power, p, e in claims])
    print(f"At T = {t[-1]}, full and limited memory: old features {features[-1, 0]:.2f} and {features[-1, 1]:.2f} s, "
          f"training {train[-1, 0]:.2f} and {train[-1, 1]:.2f} s, priors and posterior {priors[-1, 0]:.2f} and "
          f"{priors[-1, 1]:.2f} s; tuples {buffer[-1, 0] / 1e3:.0f} and {buffer[-1, 1] / 1e3:.0f} kB.\n"
          f"By this trend a phase of limited memory takes less time than one of full memory from t = {crossing:.0f}.")

    figure, axes = panels(f"Sec. 3.1: Statlog, L = {L}, P = {P}, fastest of {runs} run(s); priors, of {repeats}")
    for i, memory in enumerate(("full memory", "limited memory, 100 N tuples")):
        curve(axes[0], i, t, seconds[:, i], f"{memory}: $T^{{{claims[3 * i][3]:.2f}}}$")
        curve(axes[1], i, t, buffer[:, i] / 1e3, f"{memory}: $T^{{{claims[2 + 2 * i][3]:.2f}}}$")
    curve(axes[2], 0, arms, 1000 * by_N, "N arms (n = 100, g = 50)")
    curve(axes[2], 1, tuples, 1000 * by_n, "n tuples an arm (N = 2, g = 50)")
    curve(axes[2], 2, widths, 1000 * by_g, "g features (N = 2, n = 100)")
    axes[0].set(title="features, priors and posterior", xlabel="steps T", ylabel="seconds in learning phases so far")
    axes[1].set(title="memory of the buffer", xlabel="steps T", ylabel="kB of tuples")
    axes[2].set(title="priors of one phase, limited memory", xlabel="N, n or g", ylabel="milliseconds")
    for axis in axes:
        loglog(axis)
    save(o, "complexity", {
        "T": t.tolist(), "agents": ["full memory", "limited memory"], "phases": np.array(rows).tolist(),
        "columns of phases": ["old features s", "train s", "priors s", "buffer bytes"], "sizes N, n, g": sizes,
        "priors s": times.tolist(), "claims: over, claimed, exponent, standard error": claims}, figure)


# Sec. 3, 4: likelihood matching -------------------------------------------------------------------------------------

REAL = "statlog", "mushroom", "adult", "covertype", "census", "epileptic", "jester", "financial"


def capture(name, o, phases):
    """What NeuralLinearTS passes to match_covariance in these learning phases: (data set, phase, arm, arguments)."""
    problem = datasets.load(name, nlts.Config.L * max(phases), o.seed, o.data_dir)
    N, calls, solver = problem.n_arms, [], nlts.match_covariance

    def record(*arguments):                                              # called for all arms, phase after phase
        calls.append((name, len(calls) // N + 1, len(calls) % N, arguments))
        return solver(*arguments)

    agent = nlts.NeuralLinearTS(nlts.MLP(problem.dim, N, seed=o.seed), N, memory=100 * N, seed=o.seed)
    nlts.match_covariance = record
    try:
        for context, rewards in zip(problem.contexts, problem.rewards):
            arm = agent.act(context)
            agent.update(context, arm, rewards[arm])
    finally:
        nlts.match_covariance = solver
    return [call for call in calls if call[1] in phases and len(call[3][1]) > 0]


def synthetic(rng, n, g, m=2000, dim=20):
    """Arguments of match_covariance as in an agent: ReLU features that move a little, m tuples were evicted."""
    c, (W, step) = nlts.Config, rng.normal(size=(2, g, dim)) / np.sqrt(dim)
    b = rng.normal(size=(m + n, dim))
    evicted, E_old, E_new = (np.maximum(x, 0) for x in (b[:m] @ W.T, b[m:] @ W.T, b[m:] @ (W + 0.1 * step).T))
    Phi_old = c.lam * np.eye(g) + evicted.T @ evicted
    s2 = np.sum(E_old.T * np.linalg.solve(Phi_old, E_old.T), axis=0)
    return E_new, s2, nlts.transported_covariance(Phi_old, *nlts.transport(E_old, E_new), m, c.lam), c.ridge, c.kappa


def printed_sdp(E_new, s2, *_):
    """Eq. (sigma_opt) as the paper states it, a sum of n traces: no ridge, no bounds, and many S are solutions."""
    import cvxpy as cp                                                   # slow to import
    S = cp.Variable((E_new.shape[1],) * 2, PSD=True)
    cp.Problem(cp.Minimize(sum((cp.trace(np.outer(phi, phi) @ S) - s) ** 2 for phi, s in zip(E_new, s2)))).solve()
    return S.value


SOLVERS = {"ours": lambda *a: nlts.match_covariance(*a),
           "SCS": lambda *a: nlts.match_covariance_sdp(*a, solver="SCS"),
           "Clarabel": lambda *a: nlts.match_covariance_sdp(*a, solver="CLARABEL"), "as printed": printed_sdp}


def stated_objective(E, s2, anchor, ridge, kappa, S):
    """What match_covariance minimizes, written out; and the misfit alone, relative to s^2."""
    K, variances = np.linalg.cholesky(anchor), lambda S: np.sum(E @ S * E, axis=1)
    X, norm2 = np.linalg.solve(K, np.linalg.solve(K, S).T), variances(anchor)
    misfit = variances(S) - s2.clip(norm2 / kappa, norm2 * kappa)
    ridge_term = ridge * np.mean(norm2 ** 2) * np.sum((X - np.eye(len(X))) ** 2)
    return float(misfit @ misfit + ridge_term), float(np.linalg.norm(misfit) / np.linalg.norm(s2))


def time_solvers(arguments, names, repeats):
    """{name: [seconds, objective, relative misfit, warnings]}; ours is timed before and after the others."""
    result, ours = {}, []
    for name in ["ours"] * repeats + [name for name in names if name != "ours"] + ["ours"] * repeats:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            S = SOLVERS[name](*arguments)
            seconds = time.perf_counter() - start
        ours += [seconds] if name == "ours" else []
        result[name] = [seconds, *stated_objective(*arguments, S), len(caught)]
    result["ours"][0] = float(np.median(ours))
    return result


def matching(o):
    """Eq. (sigma_opt): match_covariance against CVXPY on buffers of real runs, and its growth with n and g."""
    phases, sets, per_set, repeats = ((2,), REAL[:2], 2, 1) if o.quick else ((2, 5, 9), REAL, 5, 3)
    names, buffers, results = [name for name in SOLVERS if not (o.quick and name == "Clarabel")], [], []
    hard = []                                                            # the same buffers with a ridge of 1e-4
    for i, name in enumerate(sets):
        progress(i, len(sets), "capturing buffers")
        try:
            found = sorted(capture(name, o, phases), key=lambda call: len(call[3][1]))
        except datasets.MissingData as error:
            print(f"skipped {name}: {error}")
            continue
        buffers += [found[j] for j in np.linspace(0, len(found) - 1, per_set).astype(int)]   # smallest n to largest
    time_solvers(synthetic(np.random.default_rng(0), 5, 5), SOLVERS, 1)  # first calls are slow
    for i, (name, phase, arm, arguments) in enumerate(buffers):
        progress(i, len(buffers), "matching real buffers")
        slow = {"Clarabel"} if 0 < i % per_set < per_set - 1 else {"as printed"} if o.quick and i % per_set else set()
        left = [solver for solver in names if solver not in slow]
        results.append({"data": name, "phase": phase, "arm": arm, "n": len(arguments[1]),
                        **time_solvers(arguments, left, repeats)})
        hard.append(time_solvers((*arguments[:3], 1e-4, arguments[4]), ["ours", "SCS"], repeats))
    table, ratios, n = [], {}, [row["n"] for row in results]
    for name in names:
        x = np.array([row[name] for row in results if name in row])
        ours = np.array([row["ours"] for row in results if name in row])
        ratios[name], gap = x[:, 0] / ours[:, 0], x[:, 1] / ours[:, 1] - 1
        table.append([name, len(x), f"{1000 * np.median(x[:, 0]):.2f}", f"{np.median(ratios[name]):.0f}",
                      f"{ratios[name].min():.0f}", f"{gap.min():.1e}", f"{gap.max():.1e}",
                      f"{np.median(x[:, 2]):.0e}", f"{x[:, 3].sum():.0f}"])
    print(f"{len(buffers)} buffers of real runs, g = 50, n = {min(n)} to {max(n)}; Clarabel on each set's smallest, "
          f"largest.\nAs printed, without ridge and bounds, is another problem: one of many S that fit the buffer.")
    print_table(["solver", "buffers", "median ms", "over ours: median", "least", "objective over ours - 1: least",
                 "most", "misfit of s2", "warnings"], table)
    ratio = np.array([row["SCS"][0] / row["ours"][0] for row in hard])
    gap = np.array([row["SCS"][1] / row["ours"][1] - 1 for row in hard])
    print(f"At a ridge of 1e-4, where bounds are active: ours {1000 * np.median([row['ours'][0] for row in hard]):.2f} ms, "
          f"SCS over ours {np.median(ratio):.0f} (least {ratio.min():.0f}),\nits objective over ours - 1 from "
          f"{gap.min():.1e} to {gap.max():.1e}.")

    curves, fits = {}, {}
    for axis, sizes, patience in (("n", [(n, 50) for n in (20, 50, 100, 200, 500, 1000, 2000)], (10, 0.3)[o.quick]),
                                  ("g", [(100, g) for g in (10, 20, 50, 100, 200)], (2, 0.2)[o.quick])):
        curves[axis], left = [], names
        for i, (n, g) in enumerate(sizes):
            progress(i, len(sizes), f"growth in {axis}")
            row = time_solvers(synthetic(np.random.default_rng([o.seed, n, g]), n, g), left, repeats)
            left = [name for name in left if name == "ours" or row[name][0] < patience]    # larger takes longer
            curves[axis].append({"n": n, "g": g, **row})
        for name in names:
            x, y = zip(*[(row[axis], row[name][0]) for row in curves[axis] if name in row])
            fits[axis, name] = [growth(x, y, low) for low in (0, x[-1] / 10)] if len(x) > 2 else []
        print(f"\nSynthetic buffers, {'g = 50' if axis == 'n' else 'n = 100'}: milliseconds (-: left out, too long)")
        print_table([f"{axis} =", *(row[axis] for row in curves[axis]), "exponent", "of the last decade"],
                    [[name, *(f"{1000 * row[name][0]:.3g}" if name in row else "-" for row in curves[axis]),
                      *([f"{p:.2f} ± {e:.2f}" for p, e in fits[axis, name]] or "--")] for name in names])

    best = np.array([np.min([row[name][:2] for name in {"SCS", "Clarabel"} & set(row)], axis=0) for row in results])
    ours, ((p, p_error), (q, q_error)) = np.array([row["ours"] for row in results]), fits["n", "ours"]
    ratio, printed, excess = best[:, 0] / ours[:, 0], ratios["as printed"], np.max(ours[:, 1] / best[:, 1] - 1)
    print("\nGoals" + " (rough: without Clarabel)" * o.quick)
    print_table(["ours, against", "goal", "measured", ""], [[*row, "met" if met else "not met"] for *row, met in (
        ("fastest CVXPY, median over real buffers", ">= 20 times", f"{np.median(ratio):.0f}", np.median(ratio) >= 20),
        ("fastest CVXPY, every real buffer", ">= 3 times", f"{ratio.min():.0f}", ratio.min() >= 3),
        ("best CVXPY's objective, every real buffer", "<= 1e-6 above", f"{excess:.0e}", excess <= 1e-6),
        ("as printed, median over real buffers", ">= 100 times", f"{np.median(printed):.0f}",
         np.median(printed) >= 100),
        ("as printed, every real buffer", ">= 100 times", f"{printed.min():.0f}", printed.min() >= 100),
        ("growth with n, 20 to 2000", "<= n^1.5", f"{p:.2f} ± {p_error:.2f}", p <= 1.5),
        ("growth with n, 200 to 2000 alone", "<= n^1.5", f"{q:.2f} ± {q_error:.2f}", q <= 1.5))])

    figure, axes = panels(f"Likelihood matching, Eq. (sigma_opt): {len(buffers)} buffers of real runs; synthetic")
    for i, name in enumerate(names):
        x, y = zip(*[(row["n"], row[name][0]) for row in results if name in row])
        curve(axes[0], i, x, y, name, linestyle="", markerfacecolor="none")
        for axis, (by, rows) in zip(axes[1:], curves.items()):
            x, y = zip(*[(row[by], row[name][0]) for row in rows if name in row])
            curve(axis, i, x, y, name + (f": ${by}^{{{fits[by, name][0][0]:.1f}}}$" if fits[by, name] else ""))
    for axis, title, label in zip(axes, ("real buffers, g = 50", "synthetic, g = 50", "synthetic, n = 100"),
                                  ("tuples of the arm, n", "tuples of the arm, n", "features, g")):
        axis.set(title=title, xlabel=label, ylabel="seconds")
        loglog(axis)
    save(o, "matching", {"columns": ["seconds", "objective", "misfit of s2", "warnings"], "real": results,
                         "real at ridge 1e-4": hard, **curves}, figure)


# What the covariance prior should be near to ------------------------------------------------------------------------

class OldAnchor(nlts.NeuralLinearTS):
    """The covariance is matched nearest to the old covariance, as if no feature had moved."""

    def anchor(self, Phi_old):
        """What match_covariance gets in place of the transported covariance."""
        return np.linalg.inv(Phi_old)

    def prior(self, i, E_old, E_new, r, A, C):
        """Phi0 with another anchor, mu0 as ever."""
        anchor = self.anchor(nlts.forgotten(self.arms[i], E_old, r)[0])
        match = nlts.match_covariance
        with swapped(nlts, match_covariance=lambda E, s2, _, *bounds: match(E, s2, anchor, *bounds)):
            return super().prior(i, E_old, E_new, r, A, C)


class NoAnchor(OldAnchor):
    """The smallest covariance that matches."""

    def anchor(self, Phi_old):
        """None: X is drawn to 0."""


ANCHORS = {  # the agent, and other hyperparameters
    "transported, lam I apart (the default)": (nlts.NeuralLinearTS, {}),
    "- followed closely: ridge 1e-4": (nlts.NeuralLinearTS, {"ridge": 1e-4}),
    "- anchor only, no matching": (nlts.NeuralLinearTS, {"kappa": 1.0}),
    "the old covariance": (OldAnchor, {}),
    "none: minimum norm": (NoAnchor, {}),
}


def anchor_run(task):
    """One run with one of ANCHORS: its reward, and the error of log s^2 on the contexts that left the buffer.

    The reference is what full memory would say under the same features: (lam I + sum of phi phi')^-1 over the tuples
    of the arm that are no longer in the buffer. Mean over arms and learning phases of mean |difference|, and of it.
    """
    torch.set_num_threads(1)
    agent_class, hyper = ANCHORS[task["anchor"]]
    seed = run_seed("anchors", task["dataset"], task["run"], task["seed"])
    problem = datasets.load(task["dataset"], task["steps"], seed, task["data_dir"])
    N, errors, seen = problem.n_arms, [], [[] for _ in range(problem.n_arms)]
    network = nlts.MLP(problem.dim, N, seed=seed)
    agent, earned = agent_class(network, N, MEMORY * N, mu0="last-layer", seed=seed, **hyper), 0.0
    agent.learn = lambda: None
    for t, context in enumerate(problem.contexts):
        arm = agent.act(context)
        earned += problem.rewards[t, arm]
        seen[arm].append(context)
        agent.update(context, arm, problem.rewards[t, arm])
        if (t + 1) % agent.config.L == 0:
            E_old = agent.buffer_features()
            train_together([agent])
            agent.compute_priors(E_old)
            for i, arm in enumerate(agent.arms):
                left = np.array(seen[i][:len(seen[i]) - len(E_old[i])])
                if len(left) >= 5:
                    phi = nlts.last_layer_activations(agent.network, left)
                    precision = agent.config.lam * np.eye(phi.shape[1]) + phi.T @ phi
                    ours, full = (np.einsum("ij,ij->i", phi, np.linalg.solve(B, phi.T).T) for B in (arm.Phi0, precision))
                    alive = full > 0                                 # a context without any active unit says nothing
                    errors.append(np.log(ours[alive] / full[alive]))
    return task | {"reward": earned, "error": float(np.mean([np.abs(x).mean() for x in errors])),
                   "bias": float(np.mean([x.mean() for x in errors]))}


def anchors(o):
    """What the anchor of likelihood matching keeps of the information that left the buffer, and what it earns."""
    steps, runs = o.steps or (1300 if o.quick else 5000), o.runs or (1 if o.quick else 5)
    sets, tasks = ["statlog"] if o.quick else ["statlog", "mushroom", "census", "epileptic"], []
    for dataset in sets:
        try:
            datasets.table(datasets.SOURCES[dataset], o.data_dir)
        except datasets.MissingData as error:
            print(f"skipped: {error}", file=sys.stderr)
            continue
        tasks += [{"dataset": dataset, "anchor": name, "run": run, "steps": steps, "seed": o.seed,
                   "data_dir": o.data_dir and str(o.data_dir)} for name in ANCHORS for run in range(runs)]
    results = []
    with executor(o) as pool:
        progress(0, len(tasks))
        for future in as_completed([pool.submit(run_anywhere, str(HERE), "anchor_run", task) for task in tasks]):
            results.append(future.result())
            progress(len(results), len(tasks))
    results.sort(key=lambda line: (line["dataset"], line["anchor"], line["run"]))
    anchors_tables(results)
    save(o, "anchors", {"results": results})
    rough(o)


def anchors_tables(results):
    """The errors and the rewards, a column a data set."""
    present = list(dict.fromkeys(line["dataset"] for line in results))
    own = {(name, d): [line for line in results if (line["anchor"], line["dataset"]) == (name, d)]
           for name in ANCHORS for d in present}
    mean = lambda lines, what: np.mean([line[what] for line in lines])
    print_table(["|log s² - log s² of full memory|", *present],
                [[name, *(f"{mean(own[name, d], 'error'):.2f} ({mean(own[name, d], 'bias'):+.2f})" for d in present)]
                 for name in ANCHORS])
    print_table(["reward", *present],
                [[name, *(mean_sd([line["reward"] for line in own[name, d]]) for d in present)] for name in ANCHORS])
    print(f"{len(own[next(iter(own))])} runs of {results[0]['steps']} steps. Errors on contexts that left the buffer: mean, "
          f"and in brackets the mean\ndifference (+: less certain than full memory). Rewards: mean ± standard deviation. "
          f"μ⁰ is the last layer, which no anchor moves.")


# The choices that the paper leaves open, one at a time --------------------------------------------------------------

class AuthorsRMSProp(torch.optim.RMSprop):
    """The optimizer of the authors' code: a learning rate of 0.1/(1 + step/2), gradients of norm at most 5, and, as in
    TensorFlow, mean squares that start at 1."""

    def __init__(self, parameters):
        super().__init__(parameters, lr=0.1, alpha=0.9, eps=1e-10)
        self.steps = 0
        for p in self.param_groups[0]["params"]:
            self.state[p] = {"step": torch.tensor(0.0), "square_avg": torch.ones_like(p)}

    def step(self):
        """One step; it is never counted from 0 again."""
        torch.nn.utils.clip_grad_norm_(self.param_groups[0]["params"], 5)
        self.param_groups[0]["lr"] = 0.1 / (1 + self.steps / 2)
        self.steps += 1
        super().step()


class AuthorsTraining(nlts.NeuralLinearTS):
    """Trained by the authors' optimizer, which goes on through all phases."""

    def __init__(self, network, *arguments, **options):
        super().__init__(network, *arguments, **options)
        self.optimizer = AuthorsRMSProp(network.parameters())

    def learn(self):
        """A learning phase with another optimizer."""
        with swapped(torch.optim, Adam=lambda *_, **options: self.optimizer):
            super().learn()


class WideMLP(nlts.MLP):
    """First weights of the authors' code: all within 0.3, whatever the number of inputs."""

    def __init__(self, dim, n_arms, seed):
        super().__init__(dim, n_arms, seed=seed)
        self.input.data *= 0.3 * dim ** 0.5


class ConstantFeature(nlts.MLP):
    """An output bias, at first 0: one more feature, always 1."""

    def __init__(self, dim, n_arms, seed):
        super().__init__(dim, n_arms, seed=seed)
        self.weights = torch.nn.Parameter(torch.nn.functional.pad(self.weights.detach(), (0, 1)))

    def features(self, x):
        """phi = (phi, 1)."""
        phi = super().features(x)
        return torch.cat([phi, torch.ones(len(x), 1, dtype=phi.dtype)], 1)


class NoMean(nlts.NeuralLinearTS):
    """The covariance prior alone."""

    def prior(self, *arguments):
        """mu0 = 0."""
        return super().prior(*arguments)[0], np.zeros(last_layer(self).shape[1])


class RowMean(nlts.NeuralLinearTS):
    """Eq. (mu_prior) over the rows of the buffer."""

    def prior(self, i, E_old, E_new, r, A, C):
        """mu0 of match_mean."""
        mu_old = nlts.forgotten(self.arms[i], E_old, r)[1]
        return super().prior(i, E_old, E_new, r, A, C)[0], nlts.match_mean(E_old, E_new, mu_old)


class HalfMean(nlts.NeuralLinearTS):
    """The last layer and the carried mean, half and half; made with mu0="matched"."""

    def prior(self, i, *arguments):
        """mu0 is their mean."""
        Phi0, carried = super().prior(i, *arguments)
        return Phi0, (last_layer(self)[i] + carried) / 2


class WeakMean(nlts.NeuralLinearTS):
    """The last layer is believed as the first prior is, with lam, beside what left the buffer; with mu0="matched"."""

    def prior(self, i, *arguments):
        """f = A f_old + lam w, and f_old without the lam w of the phase before."""
        if not hasattr(self, "added"):
            self.added = np.zeros_like(last_layer(self))
        w, before = self.config.lam * last_layer(self)[i], self.added[i].copy()
        self.added[i] = w
        with swapped(nlts, transported_mean=lambda Phi_old, mu_old, A, anchor: anchor @ (A @ (Phi_old @ mu_old - before) + w)):
            return super().prior(i, *arguments)


class BufferNoise(nlts.NeuralLinearTS):
    """b follows the errors that the new posterior makes on the buffer."""

    def compute_priors(self, E_old):
        """b = a times the noise variance that the buffer alone would tell."""
        super().compute_priors(E_old)
        for i, (arm, E) in enumerate(zip(self.arms, self.buffer_features())):
            r = self.buffer.rows_of(i)[1]
            buffer = nlts.BayesianLinearRegression(len(arm.mu0))
            buffer._set_prior(arm.Phi0, arm.mu0, self.config.a0, self.config.b0)
            buffer.update(E, r)
            set_noise(arm, arm.a * buffer.b / buffer.a)


class AllNoise(nlts.NeuralLinearTS):
    """b as a full memory would have it under the new features, from all data: a reference, not an algorithm."""

    def _observe(self, context, arm, reward):
        if not hasattr(self, "everything"):
            self.everything = nlts.ReplayBuffer()
        self.everything.add(context, arm, reward)
        super()._observe(context, arm, reward)

    def compute_priors(self, E_old):
        """b of the regression on all data."""
        super().compute_priors(E_old)
        for i, arm in enumerate(self.arms):
            contexts, r = self.everything.rows_of(i)
            full = self._blank()
            full.update(nlts.last_layer_activations(self.network, contexts), r)
            set_noise(arm, full.b)


class AuthorsNoise(nlts.NeuralLinearTS):
    """b as in the authors' code: R^2 of all data beside Phi and f of the buffer, so that what left counts as noise."""

    def compute_priors(self, E_old):
        """The printed formula with all of R^2; at least 1e-3, where theirs can fall below zero."""
        R2 = [getattr(arm, "all_R2", 0.0) + arm.R2 for arm in self.arms]
        super().compute_priors(E_old)
        for arm, total in zip(self.arms, R2):
            arm.all_R2 = total - arm.R2                                  # of tuples that are no longer in the buffer
            b = self.config.b0 + (total + arm.mu0 @ arm.Phi0 @ arm.mu0 - arm.mu_hat @ arm.precision @ arm.mu_hat) / 2
            set_noise(arm, max(b, 1e-3))


def last_layer(agent):
    """The weights of the network's last layer."""
    return nlts.last_layer_weights(agent.network)


def set_noise(arm, b):
    """Another b in a posterior."""
    arm.b, arm.F[-1, -1] = b, np.sqrt(2 * b)


ABLATION = {  # the choice: {another answer: how it is made}; what is not named is as in the default
    "training: Adam, lr 1e-3": {
        "Adam, lr 1e-4": {"hyper": {"lr": 1e-4}}, "Adam, lr 3e-3": {"hyper": {"lr": 3e-3}},
        "the authors' RMSProp": {"agent": AuthorsTraining},
        "first weights within 0.3": {"network": WideMLP},
        "both of the authors'": {"agent": AuthorsTraining, "network": WideMLP},
        "both of the authors', μ⁰ the last layer": {"agent": AuthorsTraining, "network": WideMLP,
                                                    "arguments": {"mu0": "last-layer"}}},
    "the buffer: counted once": {                                        # m, in mC, stays what left
        "counted twice": {"swap": {"forgotten": lambda arm, E_old, r: (arm.precision, arm.mu_hat)}}},
    "μ⁰: last layer and carried mean, by tuples": {
        "the last layer (the paper)": {"arguments": {"mu0": "last-layer"}},
        "half and half": {"agent": HalfMean, "arguments": {"mu0": "matched"}},
        "the carried mean": {"arguments": {"mu0": "matched"}},
        "the last layer believed with λ only": {"agent": WeakMean, "arguments": {"mu0": "matched"}},
        "matched on the buffer's rows": {"agent": RowMean}, "none": {"agent": NoMean}},
    "anchor: transported": {
        "the old covariance": {"agent": OldAnchor}, "none: minimum norm": {"agent": NoAnchor},
        "none, and μ⁰ the last layer": {"agent": NoAnchor, "arguments": {"mu0": "last-layer"}}},
    "matching: ridge 0.1, κ = 10": {
        "no matching": {"hyper": {"kappa": 1.0}}, "ridge 1e-4": {"hyper": {"ridge": 1e-4}},
        "ridge 1e-4, κ = 1000": {"hyper": {"ridge": 1e-4, "kappa": 1000.0}}},
    "b: kept": {"scaled to errors on the buffer": {"agent": BufferNoise},
                "all R², the authors' code": {"agent": AuthorsNoise}, "of all data (reference)": {"agent": AllNoise}},
    "noise prior: Inv-Gamma(6, 6)": {"Inv-Gamma(6, 0.6)": {"hyper": {"b0": 0.6}}},
    "λ = 0.25": {"λ = 0.05": {"hyper": {"lam": 0.05}}, "λ = 1": {"hyper": {"lam": 1.0}}},
    "output bias: none": {"a constant feature": {"network": ConstantFeature}},
    "buffer: 100 an arm": {f"{n} an arm": {"memory": n} for n in (20, 50, 200)},
    "L = 400, P = 2L": {f"L = {L}": {"hyper": {"L": L, "P": 2 * L}} for L in (100, 200, 800)},
}
VARIANTS = {label: variant for group in ABLATION.values() for label, variant in group.items()}


def ablation(o):
    """What each choice that the paper leaves open, or gets wrong, is worth: both priors with one thing changed."""
    runs = o.runs or (2 if o.quick else 10)
    sets = ["statlog"] if o.quick else o.datasets or ["statlog", "mushroom", "census", "epileptic"]
    labels = ["counted twice", "the last layer (the paper)", "none: minimum norm"] if o.quick else list(VARIANTS)
    tasks = []
    for dataset in sets:
        try:
            steps = available_steps(o, dataset, quick=1000)
        except datasets.MissingData as error:
            print(f"skipped: {error}", file=sys.stderr)
            continue
        tasks += [make_task(o, "ablation", dataset, name, steps) for name in
                  ("both-priors", "no-prior", "perfect-prior", "neural-linear")]
        tasks += [make_task(o, "ablation", dataset, "both-priors", steps, memory=VARIANTS[label].get("memory", MEMORY),
                            variant=label, **VARIANTS[label].get("hyper", {})) for label in labels]
    lines = execute(o, "ablation", tasks, runs)
    present = [d for d in PAPER_TABLE if d in {line["dataset"] for line in lines}]
    reward = {}
    for line in lines:                                                   # sorted by run
        reward.setdefault((line["dataset"], line.get("variant") or line["algorithm"]), []).append(line["reward"])
    rows = [[f"{label}", *(mean_sd(reward[d, name]) for d in present)] for label, name in
            (("no prior", "no-prior"), ("both priors, the default", "both-priors"), ("perfect prior", "perfect-prior"),
             ("full memory", "neural-linear"))]
    print_table(["reward", *map(str.capitalize, present)], rows)
    rows = []
    for group, variants in ABLATION.items():
        chosen = [label for label in variants if label in labels]
        rows += [[group] + [""] * len(present)] * bool(chosen)
        rows += [["- " + label, *(difference_text(reward[d, label], reward[d, "both-priors"]) for d in present)]
                 for label in chosen]
    print_table(["change of the reward", *map(str.capitalize, present)], rows)
    steps, cells = max(line["steps"] for line in lines), len(labels) * len(present)
    print(f"paired difference from the default ± standard error of {runs} runs of {steps} steps; the seeds are not those of the "
          f"table.\n* beyond two standard errors: of these {cells} differences chance alone would mark about "
          f"{cells * by_chance(runs):.0f}")
    save(o, "ablation", {"runs": runs, "steps": steps,
                         "reward": {d: {name: reward[d, name] for e, name in reward if e == d} for d in present}},
         ablation_figure(reward, present, labels, runs))
    rough(o)


def by_chance(runs):
    """How often a paired difference of nothing lies beyond two standard errors: Student's t with runs - 1 degrees."""
    from scipy.stats import t                                            # slow to import
    return 2 * t.sf(2, runs - 1)


def difference_text(x, y):
    """'+12 ± 3 *': the paired difference, its standard error, and a star beyond two of them."""
    difference, error = paired(x, y)
    return f"{difference:+.0f} ± {error:.0f} {'*' if abs(difference) > 2 * error else ' '}"


def ablation_figure(reward, present, labels, runs, low=-0.75, high=1.75):
    """A row a variant, a panel a data set: where it stands between no prior (0) and the perfect prior (1)."""
    plt = pyplot()
    rows = []
    for group, variants in ABLATION.items():
        chosen = [label for label in variants if label in labels]
        rows += [(group, None)] * bool(chosen) + [("    " + label, label) for label in chosen]
    figure, axes = plt.subplots(1, len(present), figsize=(3.6 + 1.75 * len(present), 1 + 0.18 * len(rows)), sharey=True,
                                squeeze=False)
    for panel, d in zip(axes[0], present):
        none, perfect, default = (np.array(reward[d, name]) for name in ("no-prior", "perfect-prior", "both-priors"))
        unit = (perfect - none).mean()
        panel.axvline(0, color="0.6", linewidth=0.8, linestyle=":")
        panel.axvline(1, color="0.6", linewidth=0.8, linestyle="-")
        panel.axvline((default - none).mean() / unit, color="#0072B2", linewidth=1, linestyle="--")
        for y, (_, label) in enumerate(rows):
            if label is None:
                panel.axhspan(y - 0.5, y + 0.5, color="0.93", linewidth=0)
                continue
            x = (np.array(reward[d, label]) - none).mean() / unit
            difference, error = paired(reward[d, label], default)
            clear = abs(difference) > 2 * error
            marker = "<" if x < low else ">" if x > high else "o"
            panel.errorbar(np.clip(x, low, high), y, xerr=error / abs(unit) if marker == "o" else None, marker=marker,
                           color="#D55E00" if clear else "black", markerfacecolor="#D55E00" if clear else "white",
                           markersize=4.5, linewidth=1)
        panel.set_xlim(low - 0.12, high + 0.12)
        panel.set_xticks([0, 1], ["no\nprior", "perfect\nprior"], fontsize=8)
        panel.set_title(d.capitalize(), fontsize=9)
        panel.set_ylim(len(rows) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
    axes[0, 0].set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8, ha="left")
    axes[0, 0].tick_params(axis="y", pad=195)
    figure.suptitle(f"Both priors with one choice changed: mean reward of {runs} runs, ± 1 standard error of the difference\n"
                    "from the default (dashed). Filled: more than two of them away. Arrows: outside of the picture.\n"
                    "No prior and perfect prior are those of the default settings, in every row.",
                    fontsize=9)
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
    "sanity": (sanity, "Appendix C in numbers, and where its assumptions end", "1 min", "nothing"),
    "complexity": (complexity, "Sec. 3.1 measured", "2 min", "nothing"),
    "matching": (matching, "the SDP of Sec. 3: solvers compared", "15 min", "nothing; uses all data sets that are there"),
    "anchors": (anchors, "Sec. 3, 4.2: what the covariance prior keeps", "8 min", "nothing; more with Census and Epileptic"),
    "ablation": (ablation, "nothing in the paper: what each open choice is worth", "45 min", "as anchors"),
    "speed": (speed, "nothing in the paper: what a step and a phase cost", "1 min", "nothing"),
}


def parse(argv):
    """The command line as a namespace."""
    parser = argparse.ArgumentParser(
        description="Reproduce the paper's figures and tables.", formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {name:11} {what}; {duration} on two cores; needs {needs}"
                                         for name, (_, what, duration, needs) in COMMANDS.items())
        + "\n  readme      copies the results in figures/ into README.md"
        + "\n\nexample: python experiments.py table --datasets statlog mushroom --runs 20 --jobs 2")
    parser.add_argument("command", nargs="?", choices=[*COMMANDS, "readme"], metavar="COMMAND", help="see below")
    parser.add_argument("--runs", type=int, help="number of runs (default: as in the paper)")
    parser.add_argument("--steps", type=int, help="steps a run (default: as in the paper)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one a core, here %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other runs (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="folder for figures and numbers (default: figures, with --quick figures/quick)")
    parser.add_argument("--quick", action="store_true", help="a rough version in under 30 seconds")
    parser.add_argument("--data-dir", type=Path, help="where downloaded data is (default: $NLTS_DATA, then the cache)")
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), metavar="NAME",
                        help=f"only these of {', '.join(ALGORITHMS)}")
    parser.add_argument("--datasets", nargs="+", choices=PAPER_TABLE, metavar="NAME", help="table, ablation: only these")
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


class Tee:
    """Standard output that is kept: a command's words are saved beside its numbers."""

    def __init__(self, stream):
        self.stream, self.text = stream, ""

    def write(self, text):
        """Print and keep."""
        self.text += text
        return self.stream.write(text)

    def flush(self):
        """Flush the real output."""
        self.stream.flush()


def readme(path=HERE / "README.md"):
    """Put each results file that README.md names between its marks, so that no number there is typed by hand."""

    def fill(match):
        source = path.parent / match[1]
        if not source.exists():
            return match[0]
        content = source.read_text().strip("\n")
        content = content if source.suffix == ".md" else f"```\n{content}\n```"
        return f"<!-- {match[1]} -->\n{content}\n<!-- end -->"

    return re.sub(r"<!-- (figures/[\w./-]+) -->\n.*?<!-- end -->", fill, path.read_text(), flags=re.DOTALL)


def main(argv=None):
    """Run one command."""
    o = parse(argv)
    if o.command == "readme":
        (HERE / "README.md").write_text(readme())
        return
    sys.stdout = tee = Tee(sys.stdout)
    try:
        COMMANDS[o.command][0](o)
    except datasets.DataError as error:
        sys.exit(str(error))
    finally:
        sys.stdout = tee.stream
    (o.out / f"{o.command}.txt").write_text(tee.text)


if __name__ == "__main__":
    main()
