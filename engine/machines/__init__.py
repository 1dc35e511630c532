"""Work on many machines: shards that become one run, results of other runs, pools of a cluster."""
