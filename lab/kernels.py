"""The same rounding on every x86-64 machine with AVX2: imported before NumPy and torch.

Libraries of linear algebra choose their kernels by processor, and kernels round differently: in a
bandit one flipped choice changes all that follow. What the user has set stays. Once NumPy has been
imported nothing is set: it would be too late, and results record what was set.
"""
import os
import sys
from pathlib import Path

PINNED = {"OPENBLAS_CORETYPE": "Haswell",             # NumPy's linear algebra
          "MKL_CBWR": "COMPATIBLE",                   # torch's: one branch for Intel's and others
          "ONEDNN_MAX_CPU_ISA": "AVX2",               # torch's convolutions
          "ATEN_CPU_CAPABILITY": "avx2"}              # torch's own loops


def pin():
    """One thread per process, and the kernels of AVX2 where the processor has it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if "numpy" not in sys.modules and "avx2" in processor("flags").split():
        for name, value in PINNED.items():
            os.environ.setdefault(name, value)


def processor(field="model name"):
    """A field of the first processor in /proc/cpuinfo; "" where there is no such file."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")


pin()
