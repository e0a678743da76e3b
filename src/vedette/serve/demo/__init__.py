"""The demo of the service, `vedette serve --demo`: a market, a fleet and vessels, with ten thousand queries."""
