"""Numbers that can be checked: payment cards, bank accounts, addresses of the internet, American
social security numbers.
"""

import ipaddress
import re

Span = tuple[int, int, str]
"""Where in a candidate the entity is, and its name."""

_NETWORKS = (
    ("4", "4", (13, 16, 19)),
    ("51", "55", (16,)),
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),
    ("37", "37", (15,)),
    ("300", "305", (14, 16)),
    ("309", "309", (14, 16)),
    ("36", "36", (14, 15, 16, 17, 18, 19)),
    ("38", "39", (14, 16)),
    ("35", "35", (16, 17, 18, 19)),
    ("1800", "1800", (15,)),
    ("2131", "2131", (15,)),
    ("50", "50", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("56", "69", (12, 13, 14, 15, 16, 17, 18, 19)),
)
"""First digits from and to, and lengths: Visa; Mastercard (2); American Express (2); Diners Club
(4); JCB (3); Maestro; then Maestro, Discover and UnionPay together."""

_IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
    "DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 "
    "IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 "
    "MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 "
    "SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
_IBAN_LENGTHS = {code[:2]: int(code[2:]) for code in _IBANS.split()}
"""By country, as the registry of SWIFT has them."""

_SSN_WORD = re.compile(r"\b(?:ssn|social security)\b\D{0,24}$", re.IGNORECASE)
_LOCAL = ("fc", "fd", "fe8", "fe9", "fea", "feb", "ff")


def card(text: str, before: str) -> Span | None:
    """A number of a known network with the right check digit."""
    digits = re.sub(r"\D", "", text)
    known = any(
        len(digits) in lengths and low <= digits[: len(low)] <= high
        for low, high, lengths in _NETWORKS
    )
    if not known or not _luhn(digits) or len(set(digits)) < 2:
        return None
    return 0, len(text), "CREDIT_CARD"


def iban(text: str, before: str) -> Span | None:
    """As long as its country's accounts are, with the right check digits."""
    length = _IBAN_LENGTHS.get(text[:2].upper(), 0)
    places = [at for at, char in enumerate(text) if char.isalnum()]
    if not length or len(places) < length:
        return None
    end = places[length - 1] + 1
    if text[end : end + 1].isalnum():
        return None
    code = re.sub(r"[ -]", "", text[:end]).upper()
    if int("".join(str(int(char, 36)) for char in code[4:] + code[:4])) % 97 != 1:
        return None
    return 0, end, "IBAN_CODE"


def ip_address(text: str, before: str) -> Span | None:
    """Four numbers below 256, or IPv6 that isn't a time of day nor a slice of a program."""
    if re.search(r"\d\.$", before):
        return None  # the end of a longer row of numbers
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if address.version == 6:
        groups = [group for group in text.lower().split(":") if group]
        if len(groups) < 3 or (len(groups) < 5 and not _is_usual(groups[0])):
            return None
    return 0, len(text), "IP_ADDRESS"


def social_security(text: str, before: str) -> Span | None:
    """A number that may have been given out; without its hyphens only after what says so."""
    digits = re.sub(r"\D", "", text)
    if re.search(r"\d[-./]$", before):
        return None
    if digits[:3] in ("000", "666") or digits[0] == "9" or digits[3:5] == "00":
        return None
    if digits[5:] == "0000" or (text[3] != "-" and _SSN_WORD.search(before) is None):
        return None
    return 0, len(text), "US_SSN"


def _is_usual(group: str) -> bool:
    """Whether addresses that are in use begin so: global, private or of one link."""
    return (len(group) == 4 and group[0] in "23") or (len(group) == 4 and group.startswith(_LOCAL))


def _luhn(digits: str) -> bool:
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(map(int, digits[-1::-2])) + sum(
        twice - 9 if twice > 9 else twice for twice in doubled
    )
    return total % 10 == 0
