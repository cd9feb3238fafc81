"""inet, cidr, macaddr and macaddr8: Python's ipaddress objects, and text for types that Python lacks."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

from logicalrep.values.types.binary import BinaryReader, matching

Inet = IPv4Address | IPv6Address | IPv4Interface | IPv6Interface
Cidr = IPv4Network | IPv6Network

# ipaddress alone would accept a netmask written as an address, and a scope ("fe80::1%eth0").
_ADDRESS = re.compile("[0-9a-f.:]{2,45}(?:/[0-9]{1,3})?")

_FAMILY_IPV4, _FAMILY_IPV6 = 2, 3


def inet_text(text: str) -> Inet:
    """Return an address if the mask is the whole address, else an interface (address and mask)."""
    if not _ADDRESS.fullmatch(text):
        raise ValueError("not an address")
    return _host_or_interface(ipaddress.ip_interface(text))


def inet_binary(value: bytes, encoding: str) -> Inet:
    packed, prefix = _binary(value, cidr=False)
    if len(packed) == 4:
        return _host_or_interface(IPv4Interface((packed, prefix)))
    return _host_or_interface(IPv6Interface((packed, prefix)))


def cidr_text(text: str) -> Cidr:
    if not _ADDRESS.fullmatch(text) or "/" not in text:
        raise ValueError("not a network")
    return ipaddress.ip_network(text)


def cidr_binary(value: bytes, encoding: str) -> Cidr:
    packed, prefix = _binary(value, cidr=True)
    return IPv4Network((packed, prefix)) if len(packed) == 4 else IPv6Network((packed, prefix))


def _host_or_interface(value: IPv4Interface | IPv6Interface) -> Inet:
    return value.ip if value.network.prefixlen == value.max_prefixlen else value


def _binary(value: bytes, *, cidr: bool) -> tuple[bytes, int]:
    """Return the address and the length of its mask from the format: family, mask, a flag for cidr, address."""
    reader = BinaryReader(value)
    family, prefix, is_cidr, length = reader.take(4)
    if (family, length) not in ((_FAMILY_IPV4, 4), (_FAMILY_IPV6, 16)):
        raise ValueError(f"an address of family {family} and length {length}")
    if is_cidr != cidr:
        raise ValueError(f"is_cidr is {is_cidr}")
    if prefix > length * 8:
        raise ValueError(f"a mask of {prefix} bits")
    packed = reader.take(length)
    reader.end()
    return packed, prefix


def format_inet(value: Inet) -> str:
    if isinstance(value, IPv4Interface | IPv6Interface):
        return f"{_format_address(value.ip)}/{value.network.prefixlen}"
    return _format_address(value)


def format_cidr(value: Cidr) -> str:
    return f"{_format_address(value.network_address)}/{value.prefixlen}"


def _format_address(address: IPv4Address | IPv6Address) -> str:
    """Return an address as the server writes it: IPv6 addresses that begin with zeros can end with an IPv4 address."""
    text = str(address)
    if isinstance(address, IPv4Address):
        return text
    groups = [int.from_bytes(address.packed[at : at + 2], "big") for at in range(0, 16, 2)]
    mapped = not any(groups[:5]) and groups[5] == 0xFFFF
    compatible = not any(groups[:6]) and groups[6] != 0
    if mapped or compatible:
        return f"::{'ffff:' if mapped else ''}{IPv4Address(address.packed[12:])}"
    return text


def mac_text(octets: int) -> Callable[[str], str]:
    return matching(":".join(["[0-9a-f]{2}"] * octets), "a hardware address")


def mac_binary(octets: int) -> Callable[[bytes, str], str]:
    def load(value: bytes, encoding: str) -> str:
        if len(value) != octets:
            raise ValueError(f"{len(value)} bytes where there should be {octets}")
        return value.hex(":")

    return load
