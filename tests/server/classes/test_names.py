"""What somebody may be called in a class, in every script, and which two names are one."""

import pytest

from server.classes.names import LONGEST_NAME, are_alike, check_name, name_keys

GIVEN = """
Aarav Abebe Abimbola Adaeze Agnieszka Ahmed Aiko Ainhoa Aisha Ajay Akira Akshita Alejandro Amelie Amina Anahit
Anaïs Ananya Andrei Anh Anita Anneliese Anou Arash Arnav Asashi Ashitha Åsa Assane Assia Astrid Ayşe Aziz Bashit
Beatriz Bhargav Björn Blessing Bogdan Bongani Camille Carmen Cătălin Chang Chiara Chidi Chloé Çağla Dae-jung
Daiki Damla Deepak Dick Dmitri Dragana Ebony Eevi Eilidh Elif Émile Ekene Esra Fadi Fagner Faggiani Fatima Fanny
Farshid Felipe Fuchsia Fumiko Gaurav Giulia Goran Guðrún Hamza Harshit Harshita Hassan Hông Hitesh Hitomi
Ignacio Ignazio Ilona Ines Ingrid Ishita Ivana Jabulani Jakub Jasmin Jean-Pierre Jesús João José Kanak Keiko
Khadija Kwame Lakshit Lakshita Lars Leilani Łukasz Mahershala Małgorzata Manuela Marijke Mashita Matthias Mbali
Mei-Ling Merdeka Meriem Mercedes Miguel Mohit Molly Moshe Mukta Nandi Nashit Nazia Nazif Nazih Nazim Nazir
Nazira Nazrin Ngozi Nguyệt Niamh Niggemann Nokuthula Nur Odhran Oluwaseun Olga Ozioma Özgür Parashita Parshita
Penelope Piotr Prashita Priya Qadir Quang Rashit Rashida Raúl Rohit Rohitash Roksana Rudi Sakshita Saoirse
Sashika Sashita Satoshi Sean Sergio Shital Shitara Shithila Siobhán Sofía Somchai Søren Takeshi Takeshita
Tashita Temitope Thandiwe Toshiteru Toshitaka Tuấn Uchenna Ursula Vasanta Wankhede Wojciech Xóchitl Yashita
Yoshitaka Yoshito Yusuf Zainab Željko Zoë Zsófia O’Brien D'Angelo Анастасия Владимир Ольга Ярослав Їжак Ђорђе
Ґалаґан Αλέξανδρος Ελένη Ιωάννης Χριστίνα Արմեն Անահիտ გიორგი ნინო משה שִׁמְעוֹן חנה محمد مُحَمَّد فاطمة علی‌رضا
نازنین‌زهرا ئازاد ܝܘܚܢܢ አበበ ሰላም प्रिया कृष्णमूर्ति क्षितिज হাসান র‍্যাচেল শ্রীময়ী ਗੁਰਪ੍ਰੀਤ હર્ષિતા ଶ୍ରୀଧର தமிழ்ச்செல்வி కృష్ణ
ಶ್ರೀನಿವಾಸ ശ്രീകുമാർ ശ്രീലക്ഷ്മി ශ්‍රී ක්‍රිෂාන් สมชาย พิมพ์ชนก ສົມພອນ သန္တာ အောင်ဆန်းစုကြည် សុភា བསྟན་འཛིན ᠪᠠᠭᠠᠲᠤᠷ 小明 李雷 葛󠄀城 さくら
太郎 ダイキ 지우 민준 ᏎᏉᏯ ߡߊߡߊߘߎ ⵉⴷⵉⵔ
""".split()


def test_given_names_of_the_world_are_names_and_each_is_another() -> None:
    shown = [check_name(name) for name in GIVEN]
    owners: dict[str, set[str]] = {}
    for name in shown:
        for key in name_keys(name):
            owners.setdefault(key, set()).add(name)
    shared = [names for names in owners.values() if len(names) > 1]
    assert len(shown) >= 200 and shared == [{"محمد", "مُحَمَّد"}]  # the same, with its vowels


@pytest.mark.parametrize("name", ["Åsa-Li", "<b>Bo</b>", "=1+1", "Dick & Jane", "Mia 👩🏽‍💻", "कि" * LONGEST_NAME])
def test_other_names_stand_as_they_are(name: str) -> None:
    assert check_name(f" {name} ") == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, "cannot be seen") for name in ("", "  ", "\x00", "…", "\u202eevil", "An\u200bna", "\u200d\u200d",
                                                "An\u200dna", "A\u2066b", "\u3164", "An\u034fna", "شا\u200c")),
        *((name, "at most 24") for name in ("x" * 25, "कि" * 25, "a" + "\u0301" * 100)),
        *((name, "read aloud") for name in ("sh1t", "Hítler", "$hit", "Big Fucker", "fuсk", "shit-head")),
    ],
)  # fmt: skip
def test_what_nobody_can_read_or_read_aloud_is_no_name(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_name(name)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Anna", "ÁNNA", True), ("Anna", "\u0410nna", True), ("Peter", "\u0420eter", True), ("Toto", "\u03a4oto", True),
        ("MAX", "М\u0410X", True), ("Olivia", "Oli\u03bdia", True), ("Νίκος", "νικος", True), ("Нина", "НИНА", True),
        ("Son", "S\u0585\u0578", True), ("Bo", "B0", True), ("小明", "小\u200d明", True),
        ("葛城", "葛\U000e0100城", True),
        ("たいき", "だいき", False), ("タイキ", "ダイキ", False), ("राम", "रमा", False),
        ("มะลิ", "มาลี", False), ("Анна", "Anna", False),
        ("민준", "민주", False), ("Jana", "Jan", False),
    ],
)  # fmt: skip
def test_two_names_are_one_where_they_read_or_look_the_same(one: str, other: str, same: bool) -> None:
    assert are_alike(one, other) is same is are_alike(other, one)
