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
import os
import types
import zipfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch

import nlts

MARK = b"nlts agent "
SETTINGS = "n_arms", "v", "epsilon", "prior", "train", "config"


def save(agent, path):
    """Write the agent's whole state, its random state included."""
    archive = io.BytesIO()
    np.savez(archive, **state_of(agent))
    content = archive.getvalue()
    part = f"{path}.part"
    with open(part, "wb") as file:
        file.write(MARK + digest(content) + b"\n" + content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def load(agent, path):
    """Go on where the saved agent stopped."""
    line, _, content = Path(path).read_bytes().partition(b"\n")
    if line != MARK + digest(content):
        raise ValueError(f"path: {path} was not written by save, or it is damaged")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            state = dict(file)
        check(agent, state)
        network, parts = rebuilt(agent, state)
    except (AttributeError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"path: {path} does not fit this agent: {error}") from error
    vars(agent).update(parts)
    if network:
        agent.network.load_state_dict(network)


def digest(content):
    """SHA-256, as text."""
    return hashlib.sha256(content).hexdigest().encode()


# What there is to save ----------------------------------------------------------------------------

def state_of(agent):
    """All that changes while an agent plays, and its settings, as arrays by name."""
    counts = {name: getattr(agent, name) for name in ("t", "dim") if hasattr(agent, name)}
    state = {"settings": settings_of(agent), "counts": json.dumps(counts),
             "rng": json.dumps(agent.rng.bit_generator.state)}
    for i, arm in enumerate(getattr(agent, "arms", [])):
        state |= {f"arms/{i}/{name}": value for name, value in vars(arm).items()}
    if hasattr(agent, "network"):
        weights = agent.network.state_dict()
        state |= {f"network/{name}": value.numpy() for name, value in weights.items()}
    if hasattr(agent, "buffer"):
        tuples = agent.buffer.tuples
        for k, column in enumerate(("contexts", "arms", "rewards")):
            state[f"buffer/{column}"] = [one[k] for one in tuples]
    return {name: np.asarray(value) for name, value in state.items()}


def settings_of(agent):
    """What an agent was built with, as text."""
    settings = {"agent": type(agent).__name__}
    if hasattr(agent, "network"):
        settings["network"] = type(agent.network).__name__
    if hasattr(agent, "buffer"):
        settings["capacity"] = plain("capacity", agent.buffer.capacity)
    for name in SETTINGS:
        settings[name] = plain(name, getattr(agent, name, None))
    return json.dumps(settings)


def plain(name, value):
    """A setting as JSON has it: a number, a dictionary, or the name of a function."""
    if isinstance(value, nlts.Config):
        return {key: plain(key, number) for key, number in asdict(value).items()}
    if isinstance(value, partial):
        keywords = {key: plain(name, x) for key, x in value.keywords.items()}
        return [plain(name, value.func), [plain(name, x) for x in value.args], keywords]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return f"{value.__module__}.{value.__qualname__}"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise ValueError(f"{name}: expected a function of a module, which has no state to be saved, "
                     f"got {value!r}")


# Back again ---------------------------------------------------------------------------------------

def check(agent, state):
    """ValueError unless the state is that of an agent built like this one."""
    mine = state_of(agent)
    if str(state["settings"]) != settings_of(agent):
        raise ValueError(f"it has {state['settings']}, this agent has {settings_of(agent)}")
    if mine.keys() != state.keys():
        raise ValueError(f"parts {sorted(mine.keys() ^ state.keys())} are not in both")
    for name, value in state.items():
        if not name.startswith(("arms/", "network/")):
            continue
        if value.shape != mine[name].shape or value.dtype != mine[name].dtype:
            raise ValueError(f"{name} has shape {value.shape}, here {mine[name].shape}")


def rebuilt(agent, state):
    """The saved network's weights, and the saved agent's other attributes that change."""
    parts = json.loads(str(state["counts"]))
    parts["rng"] = np.random.default_rng()
    parts["rng"].bit_generator.state = json.loads(str(state["rng"]))
    network = {}
    if hasattr(agent, "arms"):
        parts["arms"] = [copy.copy(arm) for arm in agent.arms]
    for name, value in state.items():
        kind, _, rest = name.partition("/")
        if kind == "network":
            network[rest] = torch.from_numpy(value)
        elif kind == "arms":
            i, attribute = rest.split("/")
            setattr(parts["arms"][int(i)], attribute, value if value.ndim else value.item())
    if hasattr(agent, "buffer"):
        parts["buffer"] = nlts.ReplayBuffer(agent.buffer.capacity)
        columns = [state[f"buffer/{column}"] for column in ("contexts", "arms", "rewards")]
        for context, arm, reward in zip(*columns, strict=True):
            parts["buffer"].add(context, int(arm), float(reward))
    return network, parts
