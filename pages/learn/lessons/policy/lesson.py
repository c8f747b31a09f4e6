"""From answers to a policy: a reward for each next word, the price of leaving the model, and two ways of learning."""

from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.adapting import recorded_answers, recorded_reward
from engine.course.policy import (
    best_policy,
    climb,
    divergence,
    learn_from_pairs,
    likely_words,
    mean_reward,
    preference,
)
from engine.runtime import library
from pages.controls.learn.fields import choose_view, other_input, read_field, read_short_text
from pages.controls.learn.predict import choose, estimate, is_answered, is_found, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.markdown import escape_markdown
from views.core.theme import Shade

MODEL = "everyday"
TEXT = "The little girl was thirsty, so she drank a"
MOST, WORDS = 16, 4  # tokens of the text; words that are chosen among
REWARD, LARGEST = 2.0, 5.0  # of the word that is wanted, at first; of any
PRICES, PRICE = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0), 1.0
OTHERS = 0.5, 2.0  # prices of a second try
STEPS, RATE, RATE_OF_PAIRS = 100, 0.5, 2.0
TOLERANCE = 0.02
RUNS = ("ppo-free", "ppo")
QUESTION, FARTHEST, PAIR = (f"policy {part}question" for part in ("", "farthest ", "pair "))

ascend = lru_cache(maxsize=16)(climb)
teach = lru_cache(maxsize=16)(learn_from_pairs)


def experiment() -> bool:
    checkpoint = library.checkpoint(MODEL)
    label = _("state: the text so far")
    left, right = st.columns([3, 2])
    with left:
        encoding = read_field("policy-text", label, TEXT, lambda said: read_short_text(checkpoint, said, MOST))
    words, reference = likely_words(MODEL, encoding.ids, WORDS)
    rewards = (*choose_rewards(words), 0.0)
    words, reference = [*words, _("all others")], [*reference, 1 - sum(reference)]
    price = right.select_slider(
        _("price β"),
        PRICES,
        PRICE,
        key="policy-price",
        persist_state="session",
        format_func=lambda price: f"{price:g}",
    )
    best = best_policy(reference, rewards, price)
    above = st.container()
    found = ask(words, reference, rewards, price, best)
    with above:
        shown = best.tolist() if found and is_answered(QUESTION) else None
        show_altair(partial(draw_policies, words, reference, shown), key="policy bars")
        about = _(
            "The {count} likeliest words, and all others together, whose reward is 0. The bars of a policy sum to 1."
        )
        st.caption(about.format(count=WORDS))
    if not found:
        return False
    views = {
        "best": _("the best policy"),
        "steps": _("by reward"),
        "pairs": _("by pairs: DPO"),
        "far": _("a reward too far"),
    }
    view = choose_view("policy-view", views)
    if view == "best":
        draw_best(words, reference, rewards, price)
    elif view == "steps":
        draw_steps(tuple(reference), rewards, price)
    elif view == "pairs":
        draw_pairs(words, tuple(reference), rewards, price)
    else:
        draw_far()
    return is_found(QUESTION)


def choose_rewards(words: list[str]) -> tuple[float, ...]:
    """A reward for each word; at first the second is wanted."""
    said = []
    for at, (place, word) in enumerate(zip(st.columns(len(words)), words, strict=True)):
        with place:
            label = _("reward of “{word}”").format(word=escape_markdown(word.strip("·")))
            first = REWARD if at == 1 else 0.0
            key = f"policy-reward {at} {word}"
            said.append(float(st.number_input(label, -LARGEST, LARGEST, first, 0.5, key=key, persist_state="session")))
    return tuple(said)


def ask(words: list[str], reference: list[float], rewards: tuple[float, ...], price: float, best: torch.Tensor) -> bool:
    at = max(range(WORDS), key=lambda one: rewards[one])
    products = (torch.tensor(reference) * (torch.tensor(rewards) / price).exp()).tolist()
    reason = _(
        "Share · e^(reward / β) is {product:.3f} for it, {total:.3f} for all: {product:.3f} / {total:.3f} = "
        "{answer:.3f}."
    )
    told = reason.format(product=products[at], total=sum(products), answer=float(best[at]))
    question = _(
        "“{word}” has the share {share:.3f} and the reward {reward:g}. The best policy has shares in proportion to "
        "share · e^(reward / β). What is its share then, at β = {price:g}?"
    ).format(word=words[at].strip("·"), share=reference[at], reward=rewards[at], price=price)
    return estimate(
        question,
        float(best[at]),
        TOLERANCE,
        key=QUESTION,
        why=lambda _said: told,
        again=other_input("policy-price", (PRICE, *OTHERS)),
    )


def draw_policies(words: list[str], reference: list[float], best: list[float] | None, shade: Shade) -> alt.Chart:
    """The model's shares, and those of the best policy once it was asked for."""
    ink = colors(shade)
    named = {_("the model, before"): reference} | ({_("the best policy"): best} if best else {})
    rows = [(word, name, share) for name, shares in named.items() for word, share in zip(words, shares, strict=True)]
    inks = alt.Scale(domain=list(named), range=[ink["residual"], ink["attention"]][: len(named)])
    return (
        alt.Chart(pd.DataFrame(rows, columns=["word", "policy", "share"]))
        .mark_bar()
        .encode(
            alt.X("word:N", sort=words, title=_("action: the next word"), axis=alt.Axis(labelAngle=0)),
            alt.XOffset("policy:N", sort=list(named)),
            alt.Y("share:Q", title=_("policy: its share"), scale=alt.Scale(domain=[0, 1])),
            alt.Color("policy:N", title=None, scale=inks, sort=list(named)),
            tooltip=["word", "policy", "share"],
        )
        .properties(height=220)
    )


def draw_best(words: list[str], reference: list[float], rewards: tuple[float, ...], price: float) -> None:
    columns = [
        _("price β"),
        _("mean reward"),
        _("KL from the model, nats"),
        _("reward − β · KL"),
        _("the likeliest word, its share"),
    ]
    rows, above = [], st.container()
    policies = [best_policy(reference, rewards, one) for one in PRICES]
    gaps = [float(divergence(policy, reference)) for policy in policies]
    if covered := len(set(rewards)) > 1:  # else it stays the model at any price
        ask_farthest(gaps)
        covered = not is_answered(FARTHEST)
    for one, policy, kl in zip(PRICES, policies, gaps, strict=True):
        reward = float(mean_reward(policy, rewards))
        top = int(policy[:WORDS].argmax())
        likeliest = f"{words[top].strip('·')} {numeral(float(policy[top]), '.3f')}"
        paid = ["?" if covered else numeral(value, ".3f") for value in (kl, reward - one * kl)]
        rows.append((f"{one:g}", numeral(reward, ".3f"), *paid, likeliest))
    above.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    about = _(
        "A low price gives all to the best word, a high one keeps the model. The agent is the model, the state the "
        "text so far, an action the next word, and the policy the shares it has for each."
    )
    if not covered:
        st.caption(about)
    show_code(best_policy, key="policy code best", reference=reference, rewards=list(rewards), price=price)


def ask_farthest(gaps: list[float]) -> None:
    """Asks at which price the best policy is farthest from the model."""
    answer = max(range(len(gaps)), key=gaps.__getitem__)
    sentence = _("At β = {price:g} the KL is {gap:.3f}.")

    def why(said: int) -> str:
        return join_sentences(
            *(sentence.format(price=PRICES[at], gap=gaps[at]) for at in dict.fromkeys((said, answer)))
        )

    choose(
        _("Two columns are covered. At which price is the best policy farthest from the model?"),
        [numeral(price, "g") for price in PRICES],
        answer,
        key=FARTHEST,
        why=why,
    )


def draw_steps(reference: tuple[float, ...], rewards: tuple[float, ...], price: float) -> None:
    found = ascend(reference, rewards, price, STEPS, RATE)
    best = best_policy(reference, rewards, price)
    end = float(mean_reward(best, rewards) - price * divergence(best, reference))
    show_altair(partial(draw_curve, found.values, _("reward − β · KL"), end), key="policy steps")
    gap = float((found.policy - best).abs().max())
    said = _(
        "Each step follows the exact gradient, summed over all words: those that earn more than the mean, after the "
        "price, become likelier. After {steps} steps the shares differ from the best policy (the line) by at most "
        "{gap:.3f}. PPO estimates this gradient from answers that it draws."
    )
    st.caption(said.format(steps=STEPS, gap=gap))
    show_code(
        climb, key="policy code steps", reference=list(reference), rewards=list(rewards), price=price, steps=STEPS,
        rate=RATE,
    )  # fmt: skip


def draw_pairs(words: list[str], reference: tuple[float, ...], rewards: tuple[float, ...], price: float) -> None:
    rate = RATE_OF_PAIRS / max(1.0, price) ** 2  # the slope grows with the square of the price
    found = teach(reference, rewards, price, STEPS, rate)
    best = best_policy(reference, rewards, price)
    left, right = st.columns(2)
    names = [word.strip("·") for word in words]
    asked = ask_pair(names, rewards)
    covered = not is_answered(PAIR)
    with left:
        table = {
            _("better \\ than"): names,
            **{
                name: [
                    ""
                    if one == other
                    else "?"
                    if covered and {one, other} == set(asked)
                    else numeral(preference(rewards, one, other), ".2f")
                    for one in range(len(names))
                ]
                for other, name in enumerate(names)
            },
        }
        st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch")
    with right:
        show_altair(partial(draw_curve, found.values, _("DPO’s loss"), None), key="policy pairs")
    gap = float((found.policy - best).abs().max())
    said = _(
        "How often the row is preferred to the column: σ of the difference of their rewards. A reward model learns the "
        "rewards from such pairs; DPO learns the policy from them at once. After {steps} steps its shares differ from "
        "the best policy by at most {gap:.3f}."
    )
    st.caption(said.format(steps=STEPS, gap=gap))
    show_code(
        learn_from_pairs, key="policy code pairs", reference=list(reference), rewards=list(rewards), price=price,
        steps=STEPS, rate=rate,
    )  # fmt: skip


def ask_pair(names: list[str], rewards: tuple[float, ...]) -> tuple[int, int]:
    """Asks how often the word with the largest reward is preferred to the likeliest of the others."""
    one = max(range(len(names)), key=rewards.__getitem__)
    other = min(at for at in range(len(names)) if at != one)
    share = preference(rewards, one, other)
    reason = _("σ({one:g} − {other:g}) = {share:.3f}.").format(one=rewards[one], other=rewards[other], share=share)

    def why(said: float) -> str:
        if abs(said - (1 - share)) <= TOLERANCE < abs(said - share):
            return join_sentences(_("That is how often the other is preferred."), reason)
        return reason

    question = _("How often is “{one}” preferred to “{other}”: σ of the difference of their rewards?")
    estimate(question.format(one=names[one], other=names[other]), share, TOLERANCE, key=PAIR, why=why)
    return one, other


def draw_curve(values: list[float], title: str, end: float | None, shade: Shade) -> alt.LayerChart | alt.FacetChart:
    ink = colors(shade)
    table = pd.DataFrame({"step": range(len(values)), "value": values})
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
    line = alt.Chart(table).mark_line(color=ink["residual"]).encode(alt.X("step:Q", title=_("step")), y)
    rule = alt.Chart(pd.DataFrame({"value": [] if end is None else [end]})).mark_rule(color=ink["attention"]).encode(y)
    return alt.layer(line, rule).properties(height=200)


def draw_far() -> None:
    """Recorded runs of a whole model: a reward that counts happy words, without a price and with one."""
    names = {"ppo-free": _("without a price"), "ppo": _("with one")}
    rows = []
    for run in RUNS:
        first, last = recorded_reward(run)[0], recorded_reward(run)[-1]
        for when, one in ((_("before"), first), (_("after"), last)):
            rows.append(
                (names[run], when, numeral(one.reward, ".2f"), numeral(one.kl, ".1f"), numeral(one.distinct, ".0%"))
            )
    columns = ["PPO", "", _("reward"), _("KL, nats an answer"), _("different pairs of words")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    st.caption(
        _(
            "Here the actions are whole stories, and the reward counts happy words. Without a price the model finds "
            "what the reward overlooks, and writes them again and again: it is a stand-in for what was meant."
        )
    )
    draw_stories(names)
    show_code(recorded_reward, key="policy code far", run=RUNS[0])


def draw_stories(names: dict[str, str]) -> None:
    """How the models of both runs go on with the same story, after their last step."""
    last = {run: recorded_answers(run)[max(recorded_answers(run))] for run in RUNS}
    prompts = [str(one["prompt"]) for one in last[RUNS[0]]]
    paid = [float(str(one["reward"])) for one in last[RUNS[0]]]
    at = st.selectbox(
        _("a story, and how both go on"),
        range(len(prompts)),
        max(range(len(paid)), key=paid.__getitem__),
        key="policy-story",
        persist_state="session",
        format_func=lambda one: prompts[one],
    )
    for place, run in zip(st.columns(len(RUNS)), RUNS, strict=True):
        one = last[run][at]
        said = _("**{run}**, reward {reward:g}, KL {kl:.1f} nats: “{answer}”")
        answer = escape_markdown(str(one["answer"]).strip())
        with place.container(border=True, height="stretch"):
            st.markdown(said.format(run=names[run], reward=one["reward"], kl=one["kl"], answer=answer))
