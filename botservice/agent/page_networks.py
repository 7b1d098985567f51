"""Which addresses are of the public internet, and of nothing that only this machine or its neighbours may reach."""

import ipaddress
from typing import Final

# Source: IANA, "IPv4 Special-Purpose Address Registry" and "IPv6 Special-Purpose Address Registry", "IPv4 Multicast".
_NOT_PUBLIC_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",  # public by its number: what a virtual machine of Azure asks for its secrets
        ),
    )
)
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        # Teredo is in the first one, 6to4 is the third: both hold an address of version 4.
        ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
_ISATAP: Final = frozenset((0x00005EFE, 0x02005EFE))  # before an address of version 4


def is_public(address: str) -> bool:
    """Return whether an address, as numbers, is one of the public internet and holds no other in it."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:  # also one with a zone
        return False
    if isinstance(number, ipaddress.IPv4Address):
        return not any(number in network for network in _NOT_PUBLIC_4)
    if number.scope_id is not None or number not in _GLOBAL_6:  # mapped, compatible, NAT64, local, multicast: outside
        return False
    return (int(number) >> 32) & 0xFFFFFFFF not in _ISATAP and not any(number in each for each in _NOT_PUBLIC_6)
