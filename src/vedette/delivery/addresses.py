"""The addresses that events may be sent to: public ones, and networks that are allowed by name.

A URL may come from a user or from metadata. So an address inside the own network, such as that of a cloud's metadata
service, is refused, and the address that is checked is the one that the connection is made to: a host name may resolve
to another address every time.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vedette.errors import PipelineError, shown

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # the last 32 bits are an IPv4 address


class RefusedAddressError(OSError):
    """A connection to this address is not allowed."""


@dataclass(frozen=True)
class Allowed:
    """Public addresses, and those in `networks`.

    >>> Allowed.read(["10.0.0.0/8"]).refuses("10.1.2.3") is None
    True
    >>> Allowed.read([]).refuses("169.254.169.254")
    'address 169.254.169.254 is not public; to allow it, add it or its network to allow_addresses'
    """

    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, given: Sequence[str]) -> Allowed:
        """Addresses and networks as text: 127.0.0.1, 10.0.0.0/8, fd00::/8."""
        if isinstance(given, str):
            given = [given]
        networks = []
        for text in given:
            try:
                networks.append(ipaddress.ip_network(text))
            except ValueError as error:
                raise PipelineError(
                    f"must have addresses or networks such as '127.0.0.1' and '10.0.0.0/8'; got {shown(text)}: {error}",
                    option="allow_addresses",
                ) from None
        return cls(tuple(networks))

    def refuses(self, text: str) -> str | None:
        """Why a connection to an address is refused; None if it is allowed."""
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            return f"{shown(text)} is not an IP address in its usual form; use a host name, or such an address"
        if any(each in network for network in self.networks for each in _meant(address)):
            return None
        if all(map(_is_public, _meant(address))):
            return None
        return f"address {address} is not public; to allow it, add it or its network to allow_addresses"

    def check(self, text: str) -> None:
        """Raise RefusedAddressError unless a connection to the address is allowed."""
        reason = self.refuses(text)
        if reason is not None:
            raise RefusedAddressError(reason)


def _meant(address: Address) -> Iterator[Address]:
    """An address, and the IPv4 addresses that it contains: a gateway may send packets there."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if address in _NAT64 or int(address) >> 32 == 0:  # the latter is the old form ::1.2.3.4
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address in _NAT64):
        return True  # the address that it contains decides
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
