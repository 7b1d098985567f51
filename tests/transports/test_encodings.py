# ruff: noqa: RUF001 - letters of other alphabets are the point
"""Text files in old encodings are read as they were written; where that is a guess, it is said."""

import pytest

from botservice.agent.text_encodings import decode

RUSSIAN = (
    "Привет, как дела? Завтра встреча в десять часов.",
    "Завтра в десять часов утра у нас будет собрание жильцов дома. Просим всех прийти вовремя и принести документы.",
    "имя;город\n1;Наталья;Тверь\n2;Борис;Псков\n",
)
CZECH = (
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Zítra v deset hodin máme schůzi. Prosíme všechny, aby přišli včas a přinesli potřebné dokumenty.",
    "Jutro o dziesiątej mamy zebranie. Prosimy wszystkich, żeby przyszli punktualnie i przynieśli dokumenty.",
    "Sutra u deset imamo sastanak, molimo sve da dođu točno. Ključ je u kući, čaša na stolu.",
)
JAPANESE = (
    "こんにちは、明日の会議は十時からです。",
    "明日の午前十時から会議があります。皆さん、時間通りに来てください。議題は屋根の修理、予算、新しい会長の選挙です。",
)
SIMPLIFIED = (
    "你好，明天的会议十点开始。",
    "明天上午十点我们开会。请大家准时到场，并带上所需的文件。议程包括屋顶维修、预算。",
)
TRADITIONAL = (
    "你好，明天的會議十點開始。",
    "明天上午十點我們開會。請大家準時到場，並帶上所需的文件。議程包括屋頂維修、預算。",
)
KOREAN = (
    "안녕하세요, 내일 회의는 열 시에 시작합니다.",
    "내일 오전 열 시에 회의가 있습니다. 모두 제시간에 와 주시고 필요한 서류를 가져와 주세요.",
)
WESTERN = (
    "Demain à dix heures nous aurons une réunion. Merci à tous d’être à l’heure et d’apporter les documents.",
    "Mañana a las diez tenemos reunión, ¿vienes? El niño y la señora también.",
    "Größe, Öl, Straße: älter werden. Für Gäste schön müßig.",
    "Amanhã às dez não há reunião; traga os documentos necessários à eleição.",
    "I morgen klokken ti har vi møte på skolen. Vær så god å ta med kjøttkaker.",
    "id;name;stadt\n1;Müller;Köln\n2;Schäfer;Düsseldorf\n",
)
WRITTEN = {
    "cp1251": RUSSIAN,
    "koi8-r": RUSSIAN,
    "cp1250": CZECH,
    "shift_jis": JAPANESE,
    "gbk": SIMPLIFIED,
    "big5": TRADITIONAL,
    "euc_kr": KOREAN,
    "cp1252": WESTERN,
}


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in WRITTEN.items() for text in texts])
@pytest.mark.parametrize("times", [1, 40])
def test_text_is_read_in_the_encoding_in_which_it_was_written(encoding: str, text: str, times: int) -> None:
    said = "\n".join([text] * times)
    assert decode(said.encode(encoding)) == (said, None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["hello", "größe ✓", "привет", "é"])
def test_text_in_unicode_is_never_a_guess(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)) == (text, None)


@pytest.mark.parametrize(("encoding", "text"), [("cp1251", "Привет"), ("koi8-r", "Привет")])
def test_a_few_letters_are_read_as_a_guess_that_says_so(encoding: str, text: str) -> None:
    found = decode(text.encode(encoding))
    assert found is not None
    assert found[1] is not None


def test_a_large_file_is_not_looked_at_as_a_whole_and_no_letter_is_cut() -> None:
    text = "".join(f"строка номер {number} из большого файла\n" for number in range(20_000))
    assert decode(text.encode("cp1251")) == (text, None)
    chinese = "".join(f"{number} 明天上午十点我们开会，请大家准时到场。\n" for number in range(5_000))
    assert decode(chinese.encode("gbk")) == (chinese, None)


@pytest.mark.parametrize("data", [b"", bytes(range(256)) * 4, b"\x00\x01\x02" * 50, b"\x81", b"\xff\xfe\x00"])
def test_what_is_no_text_does_no_harm(data: bytes) -> None:
    decode(data)
