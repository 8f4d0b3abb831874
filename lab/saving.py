"""Save an agent, and go on from the file bit for bit.

    save(agent, path)      one file, written whole or not at all
    load(agent, path)      into an agent that was built with the same arguments

The file is one line, "nlts agent" and a SHA-256 digest, and then an .npz archive with that digest.
Nothing in it is executed. A file that was damaged, or written by an agent with other settings, is
refused with a ValueError, and the agent stays as it was.
"""
import copy
import hashlib
import io
import json
import types
import zipfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch

import nlts
from lab.files import replacing

MARK = b"nlts agent "
SETTINGS = "n_arms", "dim", "v", "epsilon", "prior", "train"
COLUMNS = "contexts", "arms", "rewards"


def save(agent, path):
    """Write the agent's whole state, its random state included."""
    archive = io.BytesIO()
    np.savez(archive, **state_of(agent))
    content = archive.getvalue()
    with replacing(Path(path)) as file:
        file.write(MARK + digest(content) + b"\n" + content)


def load(agent, path):
    """Go on where the saved agent stopped."""
    line, _, content = Path(path).read_bytes().partition(b"\n")
    if line != MARK + digest(content):
        raise ValueError(f"path: {path} was not written by save, or it is damaged")
    loaded = copy.deepcopy(agent)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            fill(loaded, dict(file))
    except (KeyError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"path: {path} does not fit this agent: {error}") from error
    if hasattr(agent, "network"):
        agent.network.load_state_dict(loaded.network.state_dict())
        loaded.network = agent.network
    vars(agent).update(vars(loaded))


def digest(content):
    """SHA-256, as text."""
    return hashlib.sha256(content).hexdigest().encode()


def state_of(agent):
    """All that changes while an agent plays, and its settings, as arrays by name."""
    state = {"settings": settings_of(agent), "t": agent.t,
             "rng": json.dumps(agent.rng.bit_generator.state)}
    for i, arm in enumerate(agent.arms):
        state |= {f"arms/{i}/{name}": value for name, value in vars(arm).items()}
    if hasattr(agent, "network"):
        for name, value in agent.network.state_dict().items():
            state[f"network/{name}"] = value.numpy()
        for k, column in enumerate(COLUMNS):
            state[f"buffer/{column}"] = [tuple_[k] for tuple_ in agent.buffer.tuples]
    return {name: np.asarray(value) for name, value in state.items()}


def settings_of(agent):
    """What an agent was built with, as text."""
    settings = {name: getattr(agent, name, None) for name in SETTINGS}
    settings |= {"agent": type(agent).__name__, "config": asdict(agent.config)}
    if hasattr(agent, "network"):
        shapes = {name: value.shape for name, value in agent.network.state_dict().items()}
        settings |= {"network": [type(agent.network).__name__, shapes],
                     "memory": agent.buffer.capacity}
    return json.dumps(settings, default=plain)


def plain(value):
    """What JSON does not know: numbers of numpy, functions by name, partial ones in parts."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return f"{value.__module__}.{value.__qualname__}"
    raise ValueError("train, prior: expected functions of a module, which have no state to be "
                     f"saved, got {value!r}")


def fill(agent, state):
    """Put a state into an agent; ValueError unless it is that of an agent built like this one."""
    if str(state["settings"]) != settings_of(agent):
        raise ValueError(f"it has {state['settings']}, this agent has {settings_of(agent)}")
    agent.t = int(state["t"])
    agent.rng.bit_generator.state = json.loads(str(state["rng"]))
    for i, arm in enumerate(agent.arms):
        for name in vars(arm):
            value = state[f"arms/{i}/{name}"]
            setattr(arm, name, value if value.ndim else value.item())
    if hasattr(agent, "network"):
        names = list(agent.network.state_dict())
        weights = {name: torch.from_numpy(state[f"network/{name}"]) for name in names}
        agent.network.load_state_dict(weights)
        agent.buffer = nlts.ReplayBuffer(agent.buffer.capacity)
        rows = [state[f"buffer/{column}"] for column in COLUMNS]
        for context, arm, reward in zip(*rows, strict=True):
            agent.buffer.add(context, int(arm), float(reward))
