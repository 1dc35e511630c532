"""Public doubles and samples for the tests of Fabula and of what builds on it. Only tests import it."""
