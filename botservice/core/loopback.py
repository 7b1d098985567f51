"""Which addresses only this machine can mean."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether only this machine can mean host: an address of it, or localhost. Other names prove nothing."""
    name = host.removeprefix("[").removesuffix("]").lower()
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
