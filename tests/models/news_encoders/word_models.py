"""What is tested of every model that reads words, as an abstract test class."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.errors import BadValue, MissingExtra
from tacit.keys import Key
from tacit.models.news_encoders.word_encoder import PADDING, TABLE
from tests.models.news_encoders.small import (
    INTERESTS,
    N_NEWS,
    batch,
    catalog,
    literal,
)

READ = Ragged.of_lengths([3, 0, 1], np.array([1, 1, 5, N_NEWS]))


class WordModelContract:
    """Subclasses give the model, trained words or not, and their own slow formulas."""

    def model(self, file: str | None = None) -> Any:
        raise NotImplementedError

    def news_by_hand(self, theta, words, row) -> Any:
        raise NotImplementedError

    def user_by_hand(self, theta, read) -> Any:
        raise NotImplementedError

    @pytest.fixture(params=["learnt", "fixed"])
    def model_and_inputs(self, request, tmp_path):
        """One whose words are trained, and one with words of a file that stay."""
        path = None
        if request.param == "fixed":
            draws = np.random.default_rng(7).standard_normal((4, 5))
            lines = zip(("storm", "final", "the", "coast"), draws, strict=True)
            text = "\n".join(f"{word} {' '.join(map(str, row))}" for word, row in lines)
            path = tmp_path / "vectors.txt"
            path.write_text(text, "utf-8")
        model = self.model(None if path is None else str(path))
        return model, model.inputs(catalog())

    def moved(self, model, inputs, dtype: str = "float64"):
        """Weights, all of them away from zero."""
        draws = np.random.default_rng(5)
        start = model.start(Key.from_seed(0), inputs, interests=INTERESTS)
        return {
            name: (value + 0.5 * draws.standard_normal(value.shape)).astype(dtype)
            for name, value in start.items()
        }

    def by_hand(self, model, weights, inputs, own):
        """Gradients of one client after another."""
        import torch

        def words(theta):
            fixed = torch.tensor(inputs.get("words", np.zeros((1, 5)))).double()
            return torch.cat([theta[PADDING][None], theta.get(TABLE, fixed)])

        def news(theta, number):
            row = {name: inputs[name][number] for name in model.columns}
            return self.news_by_hand(theta, words(theta), row)

        def user(theta, read):
            if not read:
                return torch.zeros(model.width, dtype=torch.double)
            return self.user_by_hand(theta, torch.stack(read))

        return literal(weights, own, news=news, user=user)

    @pytest.mark.parametrize("has_noise", [True, False])
    def test_gradients_are_those_of_a_literal_loop(self, model_and_inputs, has_noise):
        pytest.importorskip("torch")
        model, inputs = model_and_inputs
        weights, own = self.moved(model, inputs), batch(has_noise=has_noise)
        found = model.gradients(weights, inputs, own).to_dense()
        wanted = self.by_hand(model, weights, inputs, own)
        assert {*found.leaves} == {*weights}
        for name in weights:
            slopes = np.array([client[name] for client in wanted])
            np.testing.assert_allclose(found[name], slopes, atol=1e-9, err_msg=name)
        assert not any(found[name][3].any() for name in weights)  # has no slate

    def test_rows_of_words_tell_nothing_of_who_has_no_slate(self):
        pytest.importorskip("torch")
        model = self.model()
        inputs = model.inputs(catalog())
        tree = model.gradients(self.moved(model, inputs), inputs, batch())
        rows = tree.leaves[TABLE].parts["#rows"]
        assert (rows[3] == -1).all()
        assert (rows[0] >= 0).any()

    def test_the_total_is_the_sum_of_the_clients(self, model_and_inputs):
        pytest.importorskip("torch")
        model, inputs = model_and_inputs
        weights, own = self.moved(model, inputs), batch()
        each = model.gradients(weights, inputs, own).sum()
        total = model.total(weights, inputs, own)
        for name in weights:
            np.testing.assert_allclose(total[name], each[name], atol=1e-9, err_msg=name)

    def test_vectors_of_numpy_are_those_by_hand(self, model_and_inputs):
        torch = pytest.importorskip("torch")
        model, inputs = model_and_inputs
        weights = self.moved(model, inputs)
        theta = {name: torch.tensor(value) for name, value in weights.items()}
        fixed = torch.tensor(inputs.get("words", np.zeros((1, 5)))).double()
        words = torch.cat([theta[PADDING][None], theta.get(TABLE, fixed)])
        news = model.news(weights, inputs)
        assert news.shape == (N_NEWS + 1, model.width)
        for number in range(N_NEWS + 1):
            row = {name: inputs[name][number] for name in model.columns}
            want = self.news_by_hand(theta, words, row)
            np.testing.assert_allclose(news[number], want, atol=1e-12)
        users = model.users(weights, news, READ)
        for row, read in zip(users, READ, strict=True):
            own = torch.tensor(news[read])
            want = self.user_by_hand(theta, own) if len(read) else np.zeros(len(row))
            np.testing.assert_allclose(row, want, atol=1e-12)

    def test_the_padding_news_is_a_text_of_padding_tokens(self, model_and_inputs):
        model, inputs = model_and_inputs
        assert not any(inputs[name][N_NEWS].any() for name in model.columns)
        weights = self.moved(model, inputs)
        moved = {**weights, PADDING: weights[PADDING] + 1}
        before, after = model.news(weights, inputs), model.news(moved, inputs)
        assert (before[N_NEWS] != after[N_NEWS]).all()

    def test_blocks_of_clients_and_of_news_change_nothing(
        self, model_and_inputs, monkeypatch
    ):
        pytest.importorskip("torch")
        from tacit.models.news_encoders import torch_gradients, word_encoder

        model, inputs = model_and_inputs
        weights = self.moved(model, inputs)
        news = model.news(weights, inputs)
        users = model.users(weights, news, READ)
        tree = model.gradients(weights, inputs, batch()).to_dense()
        monkeypatch.setattr(word_encoder, "_AT_ONCE", 1)
        monkeypatch.setattr(torch_gradients, "_CLIENTS_AT_ONCE", 2)
        np.testing.assert_allclose(model.news(weights, inputs), news, atol=1e-13)
        np.testing.assert_allclose(model.users(weights, news, READ), users, atol=1e-13)
        blocks = model.gradients(weights, inputs, batch()).to_dense()
        for name in weights:
            np.testing.assert_allclose(blocks[name], tree[name], atol=1e-12)

    def test_the_layout_of_a_gradient_is_declared(self, model_and_inputs):
        pytest.importorskip("torch")
        model, inputs = model_and_inputs
        weights, own = self.moved(model, inputs, "float32"), batch()
        tree = model.gradients(weights, inputs, own)
        most_news = own.histories.shape[1] + own.candidates[0].size
        for name, slot in model.slots(weights, most_news=most_news).items():
            leaf = tree.leaves[name]
            assert leaf.shape == slot.shape
            if slot.touched is not None:
                assert leaf.parts["#rows"].shape[1] == slot.touched
            kinds = {str(part.dtype) for s, part in leaf.parts.items() if s != "#rows"}
            assert kinds == {"float32"}

    def test_a_start_is_the_keys_own_and_noise_needs_a_basis(self, model_and_inputs):
        pytest.importorskip("torch")
        model, inputs = model_and_inputs
        first, again = (model.start(Key.from_seed(0), inputs) for _ in range(2))
        assert all((first[name] == again[name]).all() for name in first)
        assert (TABLE in first) is model.vocabulary.is_trained
        with pytest.raises(BadValue, match="interests=B"):
            model.gradients(first, inputs, batch())

    def test_without_torch_it_ranks_but_has_no_gradients(
        self, model_and_inputs, monkeypatch
    ):
        model, inputs = model_and_inputs
        monkeypatch.setitem(sys.modules, "torch", None)
        weights = model.start(Key.from_seed(0), inputs)
        model.users(weights, model.news(weights, inputs), READ)
        for gradient in (model.gradients, model.total):
            with pytest.raises(MissingExtra, match="train"):
                gradient(weights, inputs, batch(has_noise=False))
