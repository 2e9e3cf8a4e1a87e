"""Pages that stand by themselves: one HTML file, no network, no script."""
