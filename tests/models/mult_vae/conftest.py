import pytest


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Small tensors only: threads would wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
