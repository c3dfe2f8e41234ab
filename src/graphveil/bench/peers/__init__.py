"""Published methods as users of PyG and Opacus would write them: what the end-to-end benchmark compares with.

Written for the benchmark from the papers, on those libraries' documented interfaces and in float32. Nothing of the product is
used here, and nothing of this is part of the product.
"""
