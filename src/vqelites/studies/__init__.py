"""Many runs that answer a question together: studies in folders, statistics, the claims of the paper, one report."""
