"""How programs are compiled."""

# On a GPU XLA would otherwise compile and time many kernels for each matrix product, which took half of a start.
OPTIONS = {"xla_gpu_enable_triton_gemm": False}
