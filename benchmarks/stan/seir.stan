// An outbreak in a closed place: infectious people counted with negative-binomial scatter.
functions {
  vector field(real t, vector x, real beta, real sigma, real gamma) {
    real infections = beta * x[1] * x[3] / 1000;
    return [-infections, infections - sigma * x[2], sigma * x[2] - gamma * x[3]]';
  }
}
data {
  int n;
  array[n] real times;
  array[n] int y;
}
parameters {
  real<lower=0> beta;
  real<lower=0> sigma;
  real<lower=0> gamma;
  real<lower=0, upper=1000> i0;
  real<lower=0> a;
}
model {
  array[n] vector[3] x = ode_rk45(field, [1000 - i0, 0, i0]', 0, times, beta, sigma, gamma);
  beta ~ lognormal(0, 1);
  sigma ~ lognormal(-1, 0.5);
  gamma ~ lognormal(-1, 0.5);
  i0 ~ lognormal(1, 1);
  a ~ exponential(5);
  for (i in 1 : n) y[i] ~ neg_binomial_2(fmax(x[i, 3], 1e-8), 1 / a);
}
