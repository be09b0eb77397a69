"""A shop on loopback that defends itself, and a gateway of sticky sessions before it.

``catalogue`` says what is sold, ``story`` what happens on the day, ``watch`` whom the
shop suspects and why, ``desk`` what it answers, ``truth`` what it remembers; ``server``
and ``gateway`` speak HTTP, ``host`` runs both, ``addon`` brings them into a crawl.
"""
