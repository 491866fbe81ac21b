package windrow;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;

/** What packs tell of the values of some columns, for each partition of a snapshot by its number. */
final class PartitionFigures {
    static final int COUNT = 0;
    static final int LEAST = 1;
    static final int GREATEST = 2;
    static final int TOTAL = 3;
    private static final int KINDS = 4;

    final List columns;
    /** Rows of each partition; negative unless all its files are in packs. */
    final long[] rows;
    /** By column, kind of figure and partition; zero where it is null. */
    private final long[][][] values;
    private final boolean[][] certain;

    PartitionFigures(List columns, byte[] stream) throws IOException {
        this.columns = columns;
        BufferAllocator memory = PartitionValues.allocator();
        ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), memory);
        try {
            reader.loadNextBatch();
            VectorSchemaRoot batch = reader.getVectorSchemaRoot();
            this.rows = numbers((BigIntVector) batch.getVector(0), batch.getRowCount(), -1L);
            this.values = new long[columns.size()][KINDS][];
            this.certain = new boolean[columns.size()][rows.length];
            for (int i = 0; i < columns.size(); i++) {
                BigIntVector counts = (BigIntVector) batch.getVector(1 + i * KINDS);
                for (int row = 0; row < rows.length; row++) certain[i][row] = !counts.isNull(row);
                for (int kind = 0; kind < KINDS; kind++) {
                    BigIntVector vector = (BigIntVector) batch.getVector(1 + i * KINDS + kind);
                    values[i][kind] = numbers(vector, rows.length, 0L);
                }
            }
        } finally {
            reader.close();
            memory.close();
        }
    }

    private static long[] numbers(BigIntVector vector, int count, long otherwise) {
        long[] numbers = new long[count];
        for (int i = 0; i < count; i++) numbers[i] = vector.isNull(i) ? otherwise : vector.get(i);
        return numbers;
    }

    boolean isCertain(int column, int partition) {
        return certain[column][partition];
    }

    long of(int column, int kind, int partition) {
        return values[column][kind][partition];
    }
}
