"""Theorem 2 of the paper: the weight of self-expression below which Z keeps full rank."""


def gamma_bound(alpha: float, n: int, d: int, lambda_max: float) -> float:
    """alpha^2 / (lambda_max (alpha + min(d/n, 1))): a bound on the weight of 1/2 ||Z - ZC||^2, undivided.

    lambda_max is the largest eigenvalue of M = (I - C)(I - C)'. The library's gamma multiplies the term divided
    by n, so it is compared with n times this.
    """
    return alpha**2 / (lambda_max * (alpha + min(d / n, 1.0)))


def gamma_safe(n: int, d: int, eps: float) -> float:
    """The bound on the library's gamma that needs no data: ||C||_2 <= 1 gives lambda_max(M) <= 4.

    For d <= n the batch size cancels: d / (4 eps (1 + eps)).
    """
    return n * gamma_bound(d / (n * eps), n, d, lambda_max=4.0)
