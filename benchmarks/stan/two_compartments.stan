// A dose into the blood that spreads to the tissue: concentrations with log-normal error.
functions {
  vector field(real t, vector x, real k10, real k12, real k21) {
    return [-(k10 + k12) * x[1] + k21 * x[2], k12 * x[1] - k21 * x[2]]';
  }
}
data {
  int n;
  array[n] real times;
  vector[n] y;
}
parameters {
  real<lower=0> k10;
  real<lower=0> k12;
  real<lower=0> k21;
  real<lower=0> V;
  real<lower=0> s;
}
model {
  array[n] vector[2] x = ode_rk45(field, [100, 0]', 0, times, k10, k12, k21);
  k10 ~ lognormal(-1, 1);
  k12 ~ lognormal(-1, 1);
  k21 ~ lognormal(-1, 1);
  V ~ lognormal(2, 1);
  s ~ lognormal(-2, 1);
  for (i in 1 : n) y[i] ~ lognormal(log(fmax(x[i, 1], 1e-12) / V), s);
}
