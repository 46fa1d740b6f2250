// Robertson's stiff kinetics with all states measured; absolute tolerances fit the middle one, of size 1e-5.
functions {
  vector field(real t, vector x, real k1, real k2, real k3) {
    real first = k1 * x[1];
    real second = k2 * square(x[2]);
    real third = k3 * x[2] * x[3];
    return [-first + third, first - third - second, second]';
  }
}
data {
  int n;
  array[n] real times;
  array[n] vector[3] y;
}
parameters {
  real<lower=0> k1;
  real<lower=0> k2;
  real<lower=0> k3;
}
model {
  array[n] vector[3] x = ode_bdf_tol(field, [1, 0, 0]', 0, times, 1e-6, 1e-10, 100000, k1, k2, k3);
  k1 ~ lognormal(log(0.05), 1);
  k2 ~ lognormal(log(2e7), 1);
  k3 ~ lognormal(log(2e4), 1);
  for (i in 1 : n) {
    y[i, 1] ~ normal(x[i, 1], 0.02);
    y[i, 2] ~ normal(1e4 * x[i, 2], 0.02);
    y[i, 3] ~ normal(x[i, 3], 0.02);
  }
}
