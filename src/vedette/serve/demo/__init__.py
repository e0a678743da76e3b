"""The demo of the service, `vedette serve --demo`: a market and a fleet that move, with ten thousand queries."""
