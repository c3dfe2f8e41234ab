"""Side-by-side measurements, each a function that returns ratios with their targets."""
