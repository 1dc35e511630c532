"""Completion lists in replies: read as meant, and never guessed."""

import pytest

from fabula.evaluation.events.votes import Unreadable, parse_completion, parsed_completion


@pytest.mark.parametrize(
    "text",
    [
        "Finally we have [COMPLETE_LIST]: 1, 0",
        "Finally, we have **[COMPLETE_LIST]: 1, 0**.",
        "**[COMPLETE_LIST]**: `1, 0`",
        "[COMPLETE_LIST]: [1, 0].",
        "[complete_list]:1,0",
        "[COMPLETE_LIST]: 1, 0. Neither 1 nor 0 is certain.",
        "[COMPLETE_LIST]:\n1, 0\n",
        "[COMPLETE_LIST] - 1, 0",
        "[COMPLETE_LIST]\N{FULLWIDTH COLON}1\N{FULLWIDTH COMMA}0",
        "[COMPLETE_LIST]: 1\N{IDEOGRAPHIC COMMA}0\N{IDEOGRAPHIC FULL STOP}",
        "[COMPLETE_LIST]: \N{FULLWIDTH DIGIT ONE}, \N{FULLWIDTH DIGIT ZERO}",
        "\N{LEFT BLACK LENTICULAR BRACKET}COMPLETE_LIST\N{RIGHT BLACK LENTICULAR BRACKET}: 1, 0",
        "[COMPLETE_LIST]: 0, 1\nOn reflection:\n[COMPLETE_LIST]: 1, 0",
        "[COMPLETE_LIST]: 1, 0\nThe [COMPLETE_LIST] says that the first event is completed.",
    ],
)
def test_a_reply_when_it_has_a_list_is_read(text: str) -> None:
    assert parse_completion(text, 2).flags == (1, 0)


@pytest.mark.parametrize(
    ("text", "remarks"),
    [
        ("[COMPLETE_LIST]: 0, 1 (partially), 1", (None, "partially", None)),
        ("**[COMPLETE_LIST]: 0 (never starts),1(inferred), 1 (the end is cut off)**.",
         ("never starts", "inferred", "the end is cut off")),
        ("[COMPLETE_LIST]: [0, 1, 1 (with a note that the third event is inferred)].",
         (None, None, "with a note that the third event is inferred")),
        ("[COMPLETE_LIST]: 0, 1, 1 (event 1 is not shown)", (None, None, None)),
        ("[COMPLETE_LIST]: 0 (at 0.5 s), 1, 1", ("at 0.5 s", None, None)),
    ],
)  # fmt: skip
def test_a_list_when_flags_have_remarks_is_read_and_keeps_them(
    text: str, remarks: tuple[str | None, ...]
) -> None:
    read = parse_completion(text, 3)
    assert (read.flags, read.remarks) == ((0, 1, 1), remarks)
    assert ("remarks" in parsed_completion(read)) == any(remarks)


@pytest.mark.parametrize("list_", ["1 (or 0)", "1 (0)", "1 (maybe 0)", "0 (1", "1 (partially, 0"])
def test_a_flag_when_its_remark_may_be_another_flag_is_no_answer(list_: str) -> None:
    for text in (
        (f"{list_}, 1", f"1, {list_}, 1")
        if "(" in list_ and ")" not in list_
        else (
            f"{list_}, 1",
            f"1, {list_}",
            list_,
        )
    ):
        with pytest.raises(Unreadable):
            parse_completion(f"[COMPLETE_LIST]: {text}", text.count(",") + 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no .* in the reply"),
        ("The events are completed: 1, 0", "no .* in the reply"),
        ("Complete list: 1, 0", "no .* in the reply"),
        ("[0, 1]: 1, 0", "no .* in the reply"),
        ("[COMPLETE_LIST]: none", "no list"),
        ("[COMPLETE_LIST]: 1, 2", "no list"),
        ("[COMPLETE_LIST]: 1.0, 0.0", "no list"),
        ("[COMPLETE_LIST]: 10, 0", "no list"),
        ("[COMPLETE_LIST]: 1, 0, maybe 1", "no list"),
        ("[COMPLETE_LIST]: 1, 0, 1", "3 flags for 2"),
        ("[COMPLETE_LIST]: 1 0", "no list"),
        ("[COMPLETE_LIST]: -1, 0", "no list"),
        ("[COMPLETE_LIST]: \N{MINUS SIGN}1, 0", "no list"),
        ("[COMPLETE_LIST]: 1, 0/1", "no list"),
        ("[COMPLETE_LIST]: 1, 0 or 1", "no list"),
        ("[COMPLETE_LIST]: 1, 0%", "no list"),
        ("[COMPLETE_LIST]: 1, 0; 1", "no list"),
        ("[COMPLETE_LIST]: true, false", "no list"),
        ("The form is [COMPLETE_LIST]: 1, 0\n[COMPLETE_LIST]: 2, 1", "no list"),
        ("The form is [COMPLETE_LIST]: 1, 0\n[COMPLETE_LIST]: yes, no", "no list"),
        ("[COMPLETE_LIST]: 1, 0\n[COMPLETE_LIST]: 1", "1 flags for 2"),
    ],
)
def test_a_reply_when_its_list_is_missing_or_wrong_is_no_answer(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        parse_completion(text, 2)
