// Boehm et al. 2014, as in the PEtab collection: unknowns are uniform on the scale of logarithms.
functions {
  vector field(real t, vector x, vector k) {
    real dose = 1.25e-7 * exp(-k[1] * t) * k[2];
    real cyt = 1.4;
    real nuc = 0.45;
    real aa = dose * square(x[1]);
    real ab = dose * x[1] * x[2];
    real bb = dose * square(x[2]);
    vector[8] d;
    d[1] = -2 * aa - ab + nuc / cyt * (2 * k[3] * x[6] + k[4] * x[7]);
    d[2] = -ab - 2 * bb + nuc / cyt * (k[4] * x[7] + 2 * k[3] * x[8]);
    d[3] = ab - k[5] * x[3];
    d[4] = aa - k[6] * x[4];
    d[5] = bb - k[6] * x[5];
    d[6] = cyt / nuc * k[6] * x[4] - k[3] * x[6];
    d[7] = cyt / nuc * k[5] * x[3] - k[4] * x[7];
    d[8] = cyt / nuc * k[6] * x[5] - k[3] * x[8];
    return d;
  }
  vector outputs(vector x) {
    real c = 0.107;
    return [(100 * x[3] + 200 * x[4] * c) / (x[3] + x[1] * c + 2 * x[4] * c),
            (100 * x[3] + 200 * x[5] * (1 - c)) / (x[2] * (1 - c) + x[3] + 2 * x[5] * (1 - c)),
            (100 * x[3] + 100 * x[1] * c + 200 * x[4] * c)
            / (2 * x[3] + x[1] * c + 2 * x[4] * c + x[2] * (1 - c) + 2 * x[5] * (1 - c))]';
  }
}
data {
  int n;
  array[n] real times;
  array[n] vector[3] y;
  vector[3] y_first;
}
parameters {
  vector<lower=log(1e-5), upper=log(1e5)>[9] u;
}
transformed parameters {
  vector[9] k = exp(u);
}
model {
  vector[8] x0 = [207.6 * 0.693, 207.6 * (1 - 0.693), 0, 0, 0, 0, 0, 0]';
  array[n] vector[8] x = ode_bdf(field, x0, 0, times, k[1 : 6]);
  y_first ~ normal(outputs(x0), k[7 : 9]);
  for (i in 1 : n) y[i] ~ normal(outputs(x[i]), k[7 : 9]);
}
