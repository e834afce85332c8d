"""How programs are compiled."""

from typing import Any

# For `jax.jit`. On a GPU XLA would otherwise compile and time many kernels for each matrix product: half of a start.
OPTIONS: Any = {"compiler_options": {"xla_gpu_enable_triton_gemm": False}}
