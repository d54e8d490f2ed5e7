"""A shop of six hundred customers with two tastes, and a run that learnt from it."""

import pytest

import tacit

TITLES = [f"Product {number}" for number in range(24)]


def columns() -> dict[str, list[str]]:
    """Every customer buys seven products of one half of the shop."""
    user, item, title = [], [], []
    for number in range(600):
        for k in range(7):
            product = (number * 5 + k * k) % 12 + 12 * (number % 2)
            user.append(f"customer {number}")
            item.append(f"p{product}")
            title.append(TITLES[product])
    return {"customer": user, "product": item, "name": title}


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def shop():
    pytest.importorskip("pyarrow")
    return columns()


@pytest.fixture(scope="module")
def run(shop):
    return tacit.train(shop, user="customer", item="product", title="name", epsilon=4.0)
