"""What pages share that load nothing from anywhere: parts, style, plots."""
