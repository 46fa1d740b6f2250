// Hares and lynxes: the model of posteriordb's hudson_lynx_hare-lotka_volterra, solved to Stan's own tolerances.
functions {
  vector field(real t, vector x, real alpha, real beta, real gamma, real delta) {
    return [alpha * x[1] - beta * x[1] * x[2], -gamma * x[2] + delta * x[1] * x[2]]';
  }
}
data {
  int n;
  array[n] real times;
  array[n] vector[2] y;
  vector[2] y_first;
}
parameters {
  real<lower=0> alpha;
  real<lower=0> beta;
  real<lower=0> gamma;
  real<lower=0> delta;
  vector<lower=0>[2] first;
  vector<lower=0>[2] s;
}
model {
  array[n] vector[2] x = ode_rk45(field, first, 0, times, alpha, beta, gamma, delta);
  alpha ~ normal(1, 0.5);
  gamma ~ normal(1, 0.5);
  beta ~ normal(0.05, 0.05);
  delta ~ normal(0.05, 0.05);
  first ~ lognormal(log(10), 1);
  s ~ lognormal(-1, 1);
  y_first ~ lognormal(log(first), s);
  for (i in 1 : n) y[i] ~ lognormal(log(x[i]), s);
}
