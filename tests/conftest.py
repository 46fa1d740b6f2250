"""Settings shared by all tests."""

from hypothesis import settings

# The same examples on every run, so that a failure is never a matter of luck; no deadline: kernels may be compiling.
settings.register_profile("odejet", derandomize=True, deadline=None)
settings.load_profile("odejet")
