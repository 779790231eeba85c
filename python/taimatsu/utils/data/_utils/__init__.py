"""Parts of DataLoader: collating samples, fetching them, and worker processes."""
from . import collate, fetch, worker  # noqa: F401

HAS_NUMPY = True
MP_STATUS_CHECK_INTERVAL = 5.0
